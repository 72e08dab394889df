package ui

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// shaped returns a copy of a document that is encoded as all documents are: a list without entries is [], and not null, the version comes
// first, and commands have no comments.
func shaped(document any) any {
	document = withLists(reflect.ValueOf(document)).Interface()
	if m, ok := document.(map[string]any); ok {
		return versionFirst(m)
	}
	return document
}

// withLists returns a copy of a value with empty slices in the place of nil ones. Values that encode themselves stay.
func withLists(v reflect.Value) reflect.Value {
	into := reflect.New(v.Type()).Elem()
	into.Set(v)
	fill(into)
	return into
}

// fill puts empty slices in the place of nil ones, and copies what the value shares with others.
func fill(v reflect.Value) {
	if encodesItself(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(withLists(v.Elem()))
			v.Set(to)
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(withLists(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct { // json encodes the fields of those
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(withLists(v.Index(i)))
		}
		if commands, ok := list.Interface().(Commands); ok {
			commands.cutComments()
		}
		v.Set(list)
	case reflect.Map:
		if !v.IsNil() {
			entries := reflect.MakeMapWithSize(v.Type(), v.Len())
			for key, value := range v.Seq2() {
				entries.SetMapIndex(key, withLists(value))
			}
			v.Set(entries)
		}
	}
}

// encodesItself reports whether values of a type, or pointers to them, have an encoding of their own, as [time.Time] has.
func encodesItself(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// versionFirst is a document whose other fields are in the order of their names.
type versionFirst map[string]any

func (d versionFirst) MarshalJSON() ([]byte, error) {
	const version = "version"
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(d)), func(key string) bool { return key == version })
	if _, there := d[version]; there {
		keys = slices.Insert(keys, 0, version)
	}
	if len(keys) == 0 {
		return []byte("{}"), nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, key := range keys {
		text.WriteByte("{,"[min(i, 1)])
		if err := encoder.Encode(key); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(d[key]); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
