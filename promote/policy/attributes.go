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

// parseAttributes reads a .gitattributes file as git does (attr.c, parse_attr_line); top reports that it lies at the top of the
// tree, where alone macros can be defined. Lines that git does not obey are left out, except those that are only too long.
func parseAttributes(content []byte, top bool) []attributeLine {
	var lines []attributeLine
	n := 0
	for text := range bytes.Lines(bytes.TrimPrefix(content, byteOrderMark)) {
		n++
		if l, ok := parseAttributeLine(string(text)); ok && (top || l.macro == "") {
			l.number = n
			lines = append(lines, l)
		}
	}
	return lines
}

// parseAttributeLine reads one line; ok is false if git would obey nothing of it.
func parseAttributeLine(text string) (l attributeLine, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.TrimLeft(text, attributeSpace)
	if text == "" || text[0] == '#' {
		return l, false
	}
	first, rest := firstWord(text)
	l.pattern, l.states = first, strings.FieldsFunc(rest, isAttributeSpace)
	if macro, found := strings.CutPrefix(first, macroMark); found && macro != "" { // alone, the mark is a pattern
		macro, _, _ = strings.Cut(macro, "\x00")
		macro, _ = firstWordPlain(strings.TrimLeft(macro, attributeSpace))
		l.pattern, l.macro = "", macro
		ok = isAttributeName(macro)
	} else {
		ok = first != "" && first[0] != '!' && first[0] != 0
	}
	for _, state := range l.states {
		name, _, _ := strings.Cut(state, "=")
		if name != "" && (name[0] == '-' || name[0] == '!') {
			name = name[1:]
		}
		ok = ok && isAttributeName(name)
	}
	return l, ok
}

// macroMark is what the definition of a macro begins with.
const macroMark = "[attr]"

// isAttributeName reports whether git takes a word for the name of an attribute (attr.c, attr_name_valid).
func isAttributeName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && (c != '-' || i == 0) {
			return false
		}
	}
	return name != ""
}

const attributeSpace = " \t\r\n"

func isAttributeSpace(r rune) bool { return strings.ContainsRune(attributeSpace, r) }

// firstWord splits a line after its pattern, which may be quoted as in C. What is not quoted well is a word like others.
func firstWord(line string) (word, rest string) {
	if word, rest, ok := unquote(line); ok {
		return word, rest
	}
	return firstWordPlain(line)
}

// firstWordPlain splits a line at its first blank.
func firstWordPlain(line string) (word, rest string) {
	if i := strings.IndexAny(line, attributeSpace); i >= 0 {
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

// text is what a line says, whatever its blanks.
func (l attributeLine) text() string {
	return strings.Join(slices.Concat([]string{l.pattern, l.macro}, l.states), "\x00")
}

// attributeChange is a file of attributes as it was and as it is.
type attributeChange struct {
	old, content  []byte
	before, after []attributeLine
	macros        macros          // those that it may use
	there         map[string]bool // what the lines said before
	defined       map[string]int  // the lines that defined a macro before
}

// attributeLines reads a change of a file of attributes; nothing of one that is too long to be read, which is reported.
func (in *inspection) attributeLines(ctx context.Context, c gitops.Change, r *report) (a attributeChange, err error) {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return a, err
	}
	top := !strings.Contains(c.Path, "/")
	a = attributeChange{old: old, content: content, before: parseAttributes(old, top), after: parseAttributes(content, top), defined: map[string]int{}}
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

// redefines reports whether a line defines what git, or another line of before, defines as well. Only the last of them counts.
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
