package bounded

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestTOML(t *testing.T) {
	for name, c := range map[string]struct{ text, what string }{
		"a recipe":          {"schema_version = 1\n[os]\npackages = [\"a.b.c\", 'd']\n[env.set]\nA = \"x = y\"\n", ""},
		"many in a string":  {"a = \"" + strings.Repeat(".", 1000) + "\"\n", ""},
		"many in three":     {"a = \"\"\"" + strings.Repeat(".\n=", 9000) + "\"\"\"\"\"\nb = 1\n", ""},
		"many in a comment": {"# " + strings.Repeat(".", 1000) + "\n", ""},
		"an escaped quote":  {`a = "\"` + strings.Repeat(".", 1000) + "\"\n", ""},
		"a dotted key":      {strings.Repeat("a.", 40) + "a = 1\n", "levels of nesting"},
		"a dotted header":   {"[" + strings.Repeat("a.", 40) + "a]\n", "levels of nesting"},
		"quoted parts":      {strings.Repeat(`"a".`, 40) + "a = 1\n", "levels of nesting"},
		"spaced parts":      {strings.Repeat(`'' . `, 40) + "a = 1\n", "levels of nesting"},
		"arrays":            {"a = " + strings.Repeat("[", 40), "levels of nesting"},
		"tables in line":    {strings.Repeat("{a=", 40), "levels of nesting"},
		"keys":              {strings.Repeat("a=1\n", 6000), "keys"},
		"headers":           {strings.Repeat(" [[a]]\n", 6000), "keys"},
		"after comments":    {strings.Repeat("#\n[a]\n", 6000), "keys"},
		"after spaces":      {strings.Repeat(strings.Repeat(" ", 70)+"[a]\n", 6000), "keys"},
		"keys of two parts": {strings.Repeat("a.b=1\n", 3000), "keys"},
		"bytes":             {strings.Repeat("\n", 1<<20+1), "bytes"},
		"an open string":    {"a = \"\n" + strings.Repeat("a.", 40), "levels of nesting"},
	} {
		var e *Error
		if err := Usual.TOML([]byte(c.text)); errors.As(err, &e) != (c.what != "") || e != nil && e.What != c.what {
			t.Errorf("%s: %v, want %q", name, err, c.what)
		}
	}
}

func TestJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, what string }{
		"a document":  {`{"a": [1, 2, {"b": "[[[[,,,,"}]}`, ""},
		"a string":    {`"\"` + strings.Repeat("[", 100) + `"`, ""},
		"arrays":      {strings.Repeat("[", 40), "levels of nesting"},
		"objects":     {strings.Repeat(`{"":`, 40), "levels of nesting"},
		"elements":    {"[" + strings.Repeat("1,", 6000) + "1]", "keys"},
		"empty lists": {"[" + strings.Repeat("[],", 3000) + "1]", "keys"},
	} {
		var e *Error
		if err := Usual.JSON([]byte(c.text)); errors.As(err, &e) != (c.what != "") || e != nil && e.What != c.what {
			t.Errorf("%s: %v, want %q", name, err, c.what)
		}
	}
}

// size is the depth of a value, and its members and elements.
func size(v any) (depth, members int) {
	grow := func(v any) {
		d, m := size(v)
		depth, members = max(depth, d+1), members+m+1
	}
	switch v := v.(type) {
	case map[string]any:
		for _, v := range v {
			grow(v)
		}
	case []any:
		for _, v := range v {
			grow(v)
		}
	}
	return depth, members
}

// small limits let the fuzzer reach them.
var small = Limits{Bytes: 4 << 10, Depth: 4, Keys: 20}

// FuzzTOML compares the check with the library: a document that passes has no more in it than the limits say. Headers and
// the keys below them count apart, so that there may be two such depths. Elements of arrays are not counted.
func FuzzTOML(f *testing.F) {
	for _, text := range []string{"a.b.c.d.e=1", "[a.b.c]\nd.e.f=1", "a={b={c={d={e=1}}}}", "[[a]]\n[[a]]\nb.c=[[[[[1]]]]]",
		"a=\"\"\"\"\"\"\"\"\nb.c.d.e.f=1", "a='''\\'''\nb=1", "\"a.b\".'c.d'=1", "a=1 # [[[[\nb=2", "a=\"\\\"\"\nb=1", "\r\na\t.\tb = 1.5\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if small.TOML(text) != nil {
			return
		}
		var all map[string]any
		if toml.Unmarshal(text, &all) != nil {
			return
		}
		var tables int
		var count func(v any)
		count = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for _, v := range v {
					tables++
					count(v)
				}
			case []any:
				for _, v := range v {
					count(v)
				}
			}
		}
		count(all)
		// A key of the first line's header is not counted by its line.
		if depth, _ := size(all); depth > 3*(small.Depth+1) || tables > 2*(small.Keys+2) {
			t.Errorf("%d deep, %d keys: %q", depth, tables, text)
		}
	})
}

// FuzzJSON compares the check with encoding/json in the same way.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a":{"b":[1,2,{"c":"\""}]}}`, `[[[[[1]]]]]`, `{"[[[":"]]]"}`, `[1,2,3]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if small.JSON(text) != nil {
			return
		}
		var v any
		if json.Unmarshal(text, &v) != nil {
			return
		}
		if depth, members := size(v); depth > small.Depth || members > small.Keys {
			t.Errorf("%d deep, %d members: %q", depth, members, text)
		}
	})
}
