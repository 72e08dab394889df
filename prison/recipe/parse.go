package recipe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// Parse reads a recipe. If the recipe has mistakes, the error is an [Errors] with all of them.
func Parse(content []byte) (Recipe, error) {
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // the byte order mark of some editors
	if err := bounded.Usual.TOML(content); err != nil {
		return Recipe{}, Errors{tooMuch(FileName, err)}
	}
	var all map[string]any
	if err := toml.Unmarshal(content, &all); err != nil {
		return Recipe{}, Errors{syntaxError(err)}
	}
	p := &parser{lines: findLines(content)}
	if !p.version(all["schema_version"]) {
		return Recipe{}, p.wrong // this program may misinterpret the rest
	}
	r := p.recipe(table{p, nil, all})
	if len(p.wrong) > 0 {
		slices.SortStableFunc(p.wrong, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
		return Recipe{}, p.wrong
	}
	return r, nil
}

// syntaxError returns the position at which a document is not TOML.
func syntaxError(err error) *Error {
	decode, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		return &Error{File: FileName, Message: fmt.Sprintf("%q", err)}
	}
	row, column := decode.Position()
	message := printable(strings.TrimPrefix(decode.Error(), "toml: "))
	return &Error{File: FileName, Line: row, Message: fmt.Sprintf("not TOML at column %d: %s", column, message)}
}

// printable escapes control characters, which a terminal would obey.
func printable(s string) string {
	quoted := fmt.Sprintf("%q", s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// parser collects the mistakes.
type parser struct {
	lines lines
	wrong Errors
}

func (p *parser) errorf(path []string, format string, args ...any) {
	p.wrong = append(p.wrong, &Error{File: FileName, Line: p.lines.of(path), Message: fmt.Sprintf(format, args...)})
}

// version reports whether this program can read the format of the recipe.
func (p *parser) version(value any) bool {
	at := []string{"schema_version"}
	switch v, isNumber := value.(int64); {
	case value == nil:
		return true
	case !isNumber:
		p.errorf(at, "schema_version is %s, want the number %d", kind(value), Version)
	case v < 1:
		p.errorf(at, "schema_version is %d; the first one is 1", v)
	case v > Version:
		p.errorf(at, "schema_version %d is newer than this program reads (%d): a newer program is needed", v, Version)
	default:
		return true
	}
	return false
}

func (p *parser) recipe(top table) (r Recipe) {
	top.only("schema_version", "os", "languages", "agents", "startup", "prestart", "env")
	if os, ok := top.table("os"); ok {
		r.OS = os.os()
	}
	if languages, ok := top.table("languages"); ok {
		for _, name := range slices.Sorted(maps.Keys(languages.values)) {
			r.Languages = append(r.Languages, languages.language(name))
		}
	}
	if agents, ok := top.table("agents"); ok {
		r.Agents = agents.agents()
	}
	r.Startup, r.Prestart = top.commands("startup"), top.commands("prestart")
	if env, ok := top.table("env"); ok {
		r.Env = env.env()
	}
	return r
}

// table is a table of a document, with methods that read its values.
type table struct {
	*parser
	path   []string
	values map[string]any
}

func (t table) at(key string) []string { return append(t.path[:len(t.path):len(t.path)], key) }

// errorf adds a mistake in the value of a key.
func (t table) errorf(key, format string, args ...any) {
	t.parser.errorf(t.at(key), "%s: %s", dotted(t.at(key)), fmt.Sprintf(format, args...))
}

// only refuses unknown keys.
func (t table) only(keys ...string) {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if slices.Contains(keys, key) {
			continue
		}
		message := "unknown key " + dotted(t.at(key))
		switch meant := Nearest(strings.ToLower(key), keys); {
		case len(t.path) == 0 && elsewhere[key] != "":
			message = fmt.Sprintf("[%s]: %s", key, elsewhere[key])
		case meant != "":
			message += fmt.Sprintf("; did you mean %q?", meant)
		default:
			message += "; here can be " + strings.Join(keys, ", ")
		}
		t.parser.errorf(t.at(key), "%s", message)
	}
}

// elsewhere has the reasons why a recipe has no table of a name, for users who look for it.
var elsewhere = map[string]string{
	"ports":   "reserved; ports are not forwarded yet",
	"network": notYours, "runtime": notYours, "limits": notYours, "secrets": notYours, "mounts": notYours, "volumes": notYours,
}

const notYours = "a recipe cannot set this, because everybody who commits can change it: set it in your own configuration"

// value returns the value of a key, if the key exists. It adds a mistake if the value has another type than want describes.
func value[T any](t table, key, want string) (v T, ok bool) {
	given, exists := t.values[key]
	if v, ok = given.(T); exists && !ok {
		t.errorf(key, "is %s, want %s", kind(given), want)
	}
	return v, ok
}

func (t table) table(key string) (table, bool) {
	values, ok := value[map[string]any](t, key, "a table such as ["+dotted(t.at(key))+"]")
	return table{t.parser, t.at(key), values}, ok
}

func (t table) text(key string) (string, bool) {
	if kind(t.values[key]) == "a number" {
		return value[string](t, key, "a text: write it in quotes")
	}
	return value[string](t, key, "a text in quotes")
}

// texts returns a list of texts. Each entry must be valid, and what describes a valid one.
func (t table) texts(key, what string, valid func(string) bool) []string {
	list, _ := value[[]any](t, key, `a list such as ["...", "..."]`)
	if len(list) > maxList {
		t.errorf(key, "%d entries are more than %d", len(list), maxList)
		return nil
	}
	var all []string
	for n, v := range list {
		s, isText := v.(string)
		switch {
		case !isText:
			t.errorf(key, "entry %d is %s, want a text in quotes", n+1, kind(v))
		case !valid(s):
			t.errorf(key, "entry %d, %s, is not %s", n+1, quote(s), what)
		default:
			all = append(all, s)
		}
	}
	return all
}

// dotted writes a path as TOML does.
func dotted(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		if !bareKey().MatchString(part) {
			parts[i] = quote(part)
		}
	}
	return strings.Join(parts, ".")
}

// quote quotes a user's text, shortened to fit into a message.
func quote(s string) string {
	const longest = 80
	if len(s) > longest {
		return fmt.Sprintf("%q...", s[:longest])
	}
	return fmt.Sprintf("%q", s)
}

// kind names the type of a value.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}
