// Package attribute reads the lines of .gitattributes files as git does, gitattributes(5).
package attribute

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// Line is a line of a .gitattributes file, gitattributes(5).
type Line struct {
	Number  int
	Pattern string // as written; empty if the line defines a macro
	Macro   string // the name that "[attr]" defines
	States  []string
}

// Parse reads a .gitattributes file as git does (attr.c, parse_attr_line). top reports that the file is at
// the top of the tree, because only that file can define macros. Lines that git ignores are left out, except lines
// that it ignores because of their length.
func Parse(content []byte, top bool) []Line {
	var lines []Line
	n := 0
	for text := range bytes.Lines(bytes.TrimPrefix(content, filekind.ByteOrderMark)) {
		n++
		if l, ok := parseLine(string(text)); ok && (top || l.Macro == "") {
			l.Number = n
			lines = append(lines, l)
		}
	}
	return lines
}

// parseLine reads one line. ok is false if git ignores the line.
func parseLine(text string) (l Line, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.TrimLeft(text, space)
	if text == "" || text[0] == '#' {
		return l, false
	}
	first, rest := firstWord(text)
	l.Pattern, l.States = first, strings.FieldsFunc(rest, isSpace)
	if macro, found := strings.CutPrefix(first, MacroMark); found && macro != "" { // without a name, the mark is a pattern
		macro, _, _ = strings.Cut(macro, "\x00")
		macro, _ = firstWordPlain(strings.TrimLeft(macro, space))
		l.Pattern, l.Macro = "", macro
		ok = isName(macro)
	} else {
		ok = first != "" && first[0] != '!' && first[0] != 0
	}
	for _, state := range l.States {
		name, _, _ := strings.Cut(state, "=")
		if name != "" && (name[0] == '-' || name[0] == '!') {
			name = name[1:]
		}
		ok = ok && isName(name)
	}
	return l, ok
}

// MacroMark begins the definition of a macro.
const MacroMark = "[attr]"

// isName reports whether git accepts a word as the name of an attribute (attr.c, attr_name_valid).
func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && (c != '-' || i == 0) {
			return false
		}
	}
	return name != ""
}

const space = " \t\r\n"

func isSpace(r rune) bool { return strings.ContainsRune(space, r) }

// firstWord splits a line after its pattern, which may be quoted as in C. A pattern with invalid quotes is an
// ordinary word.
func firstWord(line string) (word, rest string) {
	if word, rest, ok := pathname.Unquote(line); ok {
		return word, rest
	}
	return firstWordPlain(line)
}

// firstWordPlain splits a line at its first space.
func firstWordPlain(line string) (word, rest string) {
	if i := strings.IndexAny(line, space); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// Text returns the content of a line without its spaces.
func (l Line) Text() string {
	return strings.Join(slices.Concat([]string{l.Pattern, l.Macro}, l.States), "\x00")
}

// Names returns the different attributes and macros in lines.
func Names(lines []Line) map[string]bool {
	names := map[string]bool{}
	for _, l := range lines {
		names[l.Macro] = true
		for _, state := range l.States {
			name, _ := Effect{State: state}.Attribute()
			names[name] = true
		}
	}
	delete(names, "") // of a line that defines no macro
	return names
}

// LineLimit is the length in bytes from which git ignores a line.
const LineLimit = 2048

// Misread returns the reason why git reads less of an attribute file than it contains, or empty. Git stops reading a
// file from the index at a NUL.
func Misread(content []byte) string {
	if bytes.IndexByte(content, 0) >= 0 {
		return "it contains a NUL byte, where git may stop reading"
	}
	n := 0
	for line := range bytes.Lines(content) {
		if n++; len(bytes.TrimSuffix(line, []byte("\n"))) >= LineLimit {
			return fmt.Sprintf("line %d is so long that git ignores it", n)
		}
	}
	return ""
}
