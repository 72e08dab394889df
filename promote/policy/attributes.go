package policy

import (
	"bytes"
	"context"
	"fmt"
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
	for text := range bytes.Lines(bytes.TrimPrefix(content, byteOrderMark)) {
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

// attributeChange is a file of attributes as it was and as it is.
type attributeChange struct {
	old, content  []byte
	before, after []attributeLine
	macros        map[string][]string // those that it may use
	there         map[string]bool     // what the lines said before
	defined       map[string]int      // the lines that defined a macro before
}

// attributeLines reads a change of a file of attributes; nothing of one that is too long to be read, which is reported.
func (in *inspection) attributeLines(ctx context.Context, c gitops.Change, r *report) (a attributeChange, err error) {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return a, err
	}
	a = attributeChange{old: old, content: content, before: parseAttributes(old), after: parseAttributes(content), defined: map[string]int{}}
	a.there = texts(a.before)
	for _, l := range a.before {
		a.defined[l.macro]++
	}
	a.macros, err = in.macros(ctx)
	return a, err
}

// added are the lines that there were not before, wherever.
func (a *attributeChange) added() []attributeLine {
	return slices.DeleteFunc(slices.Clone(a.after), func(l attributeLine) bool { return a.there[l.text()] })
}

// redefines tells whether a line defines what git, or another line of before, defines as well. Only the last of them counts.
func (a *attributeChange) redefines(l attributeLine) bool {
	others := a.defined[l.macro]
	if a.there[l.text()] {
		others--
	}
	return l.macro == "binary" || l.macro != "" && others > 0
}

func texts(lines []attributeLine) map[string]bool {
	texts := map[string]bool{}
	for _, l := range lines {
		texts[l.text()] = true
	}
	return texts
}

// attributeLineLimit is from how many bytes on git ignores a line.
const attributeLineLimit = 2048

var byteOrderMark = []byte("\ufeff")

// misread tells why git sees less in a file of attributes than is written there; empty if it does not. What it reads
// from the index ends at a NUL.
func misread(content []byte) string {
	if bytes.IndexByte(content, 0) >= 0 {
		return "it has a NUL, where git may stop"
	}
	n := 0
	for line := range bytes.Lines(content) {
		if n++; len(bytes.TrimSuffix(line, []byte("\n"))) >= attributeLineLimit {
			return fmt.Sprintf("line %d is so long that git ignores it", n)
		}
	}
	return ""
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
