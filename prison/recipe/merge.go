package recipe

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
)

// Merge adds the requests of another recipe to the text of a recipe. It changes nothing in the text, because the
// author has chosen its order and comments. kept lists the tables whose content differs from the request. An error
// means that nothing can be added to such a text.
func Merge(content []byte, want Recipe) (merged []byte, kept []string, err error) {
	have, err := Parse(content)
	if err != nil {
		return nil, nil, err
	}
	var more Recipe
	add := func(table string, there, asked any, take func()) {
		switch {
		case reflect.ValueOf(asked).IsZero() || reflect.DeepEqual(there, asked):
		case reflect.ValueOf(there).IsZero():
			take()
		default:
			kept = append(kept, table)
		}
	}
	add("os", have.OS, want.OS, func() { more.OS = want.OS })
	for _, l := range want.Languages {
		var there Language
		if i := slices.IndexFunc(have.Languages, func(h Language) bool { return h.Name == l.Name }); i >= 0 {
			there = have.Languages[i]
		}
		add("languages."+l.Name, there, l, func() { more.Languages = append(more.Languages, l) })
	}
	add("agents", have.Agents, want.Agents, func() { more.Agents = want.Agents })
	add("startup", have.Startup, want.Startup, func() { more.Startup = want.Startup })
	add("prestart", have.Prestart, want.Prestart, func() { more.Prestart = want.Prestart })
	add("env", have.Env.Pass, want.Env.Pass, func() { more.Env.Pass = want.Env.Pass })
	add("env.set", have.Env.Set, want.Env.Set, func() { more.Env.Set = want.Env.Set })
	if reflect.DeepEqual(more, Recipe{}) {
		return content, kept, nil
	}
	tables := Marshal(more)
	if i := bytes.Index(tables, []byte("\n\n")); i >= 0 {
		tables = tables[i+1:] // without the comment and schema_version
	}
	merged = slices.Clone(content)
	if len(content) > 0 && content[len(content)-1] != '\n' {
		merged = append(merged, '\n')
	}
	merged = append(merged, tables...)
	if _, err := Parse(merged); err != nil {
		return nil, kept, fmt.Errorf("add to %s: %w", FileName, err)
	}
	return merged, kept, nil
}
