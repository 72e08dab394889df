package policy

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// attributeLine is a line of a .gitattributes file, gitattributes(5).
type attributeLine struct {
	number  int
	pattern string // as written; empty if the line defines a macro
	macro   string // the name that "[attr]" defines
	states  []string
}

// parseAttributes reads a .gitattributes file.
func parseAttributes(content []byte) []attributeLine {
	var lines []attributeLine
	n := 0
	for text := range bytes.Lines(bytes.TrimPrefix(content, []byte("\ufeff"))) {
		n++
		line := strings.TrimLeft(string(text), attributeSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		first, rest := firstWord(line)
		l := attributeLine{number: n, pattern: first, states: strings.FieldsFunc(rest, isAttributeSpace)}
		if macro, ok := strings.CutPrefix(first, "[attr]"); ok {
			fields := strings.FieldsFunc(macro+" "+rest, isAttributeSpace)
			if len(fields) == 0 {
				continue
			}
			l.pattern, l.macro, l.states = "", fields[0], fields[1:]
		}
		lines = append(lines, l)
	}
	return lines
}

const attributeSpace = " \t\r\n"

func isAttributeSpace(r rune) bool { return strings.ContainsRune(attributeSpace, r) }

// firstWord splits a line after its pattern, which may be quoted as in C. What is not quoted well is a word like others.
func firstWord(line string) (word, rest string) {
	if word, rest, ok := unquote(line); ok {
		return word, rest
	}
	if i := strings.IndexFunc(line, isAttributeSpace); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// escapes are the letters that C has for bytes.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"'}

// unquote reads the quoted text that a line begins with, as git's unquote_c_style does.
func unquote(line string) (text, rest string, ok bool) {
	if line == "" || line[0] != '"' {
		return "", "", false
	}
	var out []byte
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return string(out), line[i+1:], true
		case c != '\\':
			out = append(out, c)
		case i+1 == len(line):
			return "", "", false
		case escapes[line[i+1]] != 0:
			i++
			out = append(out, escapes[line[i]])
		default:
			octal, err := strconv.ParseUint(line[i+1:min(i+4, len(line))], 8, 8)
			if err != nil || i+4 > len(line) {
				return "", "", false
			}
			out = append(out, byte(octal))
			i += 3
		}
	}
	return "", "", false
}

// drivers lists the "filter=x", "diff=x" and "merge=x" that a line gives to paths, through the macros that it uses.
func (l attributeLine) drivers(macros map[string][]string) []string {
	var found []string
	for _, state := range l.all(macros) {
		if name, value, valued := strings.Cut(state, "="); valued && (name == "filter" || name == "diff" || name == "merge") {
			found = append(found, name+"."+value)
		}
	}
	return found
}

// all lists what a line says, with what the macros say that it uses. Macros use macros; a chain of them is followed as deep
// as it goes, each once.
func (l attributeLine) all(macros map[string][]string) []string {
	var all []string
	seen := map[string]bool{}
	for todo := l.states; len(todo) > 0; {
		state := todo[0]
		todo = todo[1:]
		if !seen[state] {
			seen[state] = true
			all = append(all, state)
			todo = append(todo[:len(todo):len(todo)], macros[state]...)
		}
	}
	return all
}

// text is what a line says, whatever its blanks.
func (l attributeLine) text() string {
	return strings.Join(slices.Concat([]string{l.pattern, l.macro}, l.states), "\x00")
}

// attributeLines reads a file of attributes as it was and as it is, and the macros that it may use; nothing of one that is too
// long to be read, which is reported.
func (in *inspection) attributeLines(ctx context.Context, c gitops.Change, r *report) (before, after []attributeLine, macros map[string][]string, err error) {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return nil, nil, nil, err
	}
	macros, err = in.macros(ctx)
	return parseAttributes(old), parseAttributes(content), macros, err
}

// added are the lines that there were not before, wherever.
func added(before, after []attributeLine) []attributeLine {
	there := texts(before)
	return slices.DeleteFunc(slices.Clone(after), func(l attributeLine) bool { return there[l.text()] })
}

func texts(lines []attributeLine) map[string]bool {
	texts := map[string]bool{}
	for _, l := range lines {
		texts[l.text()] = true
	}
	return texts
}

// macros are git's own and those of the tree's top, where alone they can be defined, before and after the commit.
func (in *inspection) macros(ctx context.Context) (map[string][]string, error) {
	macros := map[string][]string{"binary": {"-diff", "-merge", "-text"}}
	for _, w := range []*walker{in.parent, in.tree} {
		top, err := w.at(ctx, "")
		if err != nil || top == nil {
			return macros, err
		}
		content, err := in.content(ctx, top.entries[".gitattributes"])
		if err != nil {
			return nil, err
		}
		for name, states := range macrosOf(parseAttributes(content)) {
			macros[name] = append(macros[name], states...)
		}
	}
	return macros, nil
}

// macrosOf collects the macros that lines define.
func macrosOf(lines []attributeLine) map[string][]string {
	macros := map[string][]string{}
	for _, l := range lines {
		if l.macro != "" {
			macros[l.macro] = l.states
		}
	}
	return macros
}
