package policy

import (
	"bytes"
	"strings"
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
		if macro, ok := strings.CutPrefix(line, "[attr]"); ok {
			fields := strings.FieldsFunc(macro, isAttributeSpace)
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

// firstWord splits a line after its pattern, which may be quoted as in C.
func firstWord(line string) (word, rest string) {
	if line[0] == '"' {
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return line[1:i], line[i+1:]
			}
		}
	}
	if i := strings.IndexFunc(line, isAttributeSpace); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// drivers lists the "filter=x", "diff=x" and "merge=x" that a line gives to paths, through the macros that it
// uses. Macros use macros; a chain of them is followed as deep as it goes, each once.
func (l attributeLine) drivers(macros map[string][]string) []string {
	var found []string
	seen := map[string]bool{}
	todo := l.states
	for len(todo) > 0 {
		state := todo[0]
		todo = todo[1:]
		name, value, valued := strings.Cut(state, "=")
		switch {
		case valued && (name == "filter" || name == "diff" || name == "merge"):
			found = append(found, name+"."+value)
		case !valued && !seen[state]:
			seen[state] = true
			todo = append(todo[:len(todo):len(todo)], macros[state]...)
		}
	}
	return found
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
