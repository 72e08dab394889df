package policy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// attributeLine is a line of a .gitattributes file, gitattributes(5).
type attributeLine struct {
	number  int
	pattern string // as written; empty if the line defines a macro
	macro   string // the name that "[attr]" defines
	states  []string
}

// parseAttributes reads a .gitattributes file as git does (attr.c, parse_attr_line). top reports that the file is at
// the top of the tree, because only that file can define macros. Lines that git ignores are left out, except lines
// that it ignores because of their length.
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

// parseAttributeLine reads one line. ok is false if git ignores the line.
func parseAttributeLine(text string) (l attributeLine, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.TrimLeft(text, attributeSpace)
	if text == "" || text[0] == '#' {
		return l, false
	}
	first, rest := firstWord(text)
	l.pattern, l.states = first, strings.FieldsFunc(rest, isAttributeSpace)
	if macro, found := strings.CutPrefix(first, macroMark); found && macro != "" { // without a name, the mark is a pattern
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

// macroMark begins the definition of a macro.
const macroMark = "[attr]"

// isAttributeName reports whether git accepts a word as the name of an attribute (attr.c, attr_name_valid).
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
	if i := strings.IndexAny(line, attributeSpace); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// text returns the content of a line without its spaces.
func (l attributeLine) text() string {
	return strings.Join(slices.Concat([]string{l.pattern, l.macro}, l.states), "\x00")
}

// attributeChange is an attribute file before and after the commit.
type attributeChange struct {
	old, content  []byte
	before, after []attributeLine
	macros        macros          // the macros that the file may use
	there         map[string]bool // the texts of the previous lines
	defined       map[string]int  // the number of previous definitions of each macro
}

// attributeLines reads a change of an attribute file. If the file is too long to be read, it reports that and returns
// no lines.
func (in *inspection) attributeLines(ctx context.Context, c gitops.Change, r *report) (a attributeChange, err error) {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return a, err
	}
	top := !strings.Contains(c.Path, "/")
	a = attributeChange{old: old, content: content, before: parseAttributes(old, top), after: parseAttributes(content, top), there: map[string]bool{}, defined: map[string]int{}}
	for _, l := range a.before {
		a.there[l.text()] = true
		a.defined[l.macro]++
	}
	a.macros, err = in.macros(ctx)
	return a, err
}

// added returns the lines whose text is new in the file.
func (a *attributeChange) added() []attributeLine {
	return slices.DeleteFunc(slices.Clone(a.after), func(l attributeLine) bool { return a.there[l.text()] })
}

// redefines reports whether a line defines a macro that git or another previous line also defines. Only the last
// definition counts.
func (a *attributeChange) redefines(l attributeLine) bool {
	others := a.defined[l.macro]
	if a.there[l.text()] {
		others--
	}
	return l.macro == "binary" || l.macro != "" && others > 0
}

// attributeNames returns the different attributes and macros in lines.
func attributeNames(lines []attributeLine) map[string]bool {
	names := map[string]bool{}
	for _, l := range lines {
		names[l.macro] = true
		for _, state := range l.states {
			name, _ := effect{state: state}.attribute()
			names[name] = true
		}
	}
	delete(names, "") // of a line that defines no macro
	return names
}

// attributeLineLimit is the length in bytes from which git ignores a line.
const attributeLineLimit = 2048

var byteOrderMark = []byte("\ufeff")

// misread returns the reason why git reads less of an attribute file than it contains, or empty. Git stops reading a
// file from the index at a NUL.
func misread(content []byte) string {
	if bytes.IndexByte(content, 0) >= 0 {
		return "it contains a NUL byte, where git may stop reading"
	}
	n := 0
	for line := range bytes.Lines(content) {
		if n++; len(bytes.TrimSuffix(line, []byte("\n"))) >= attributeLineLimit {
			return fmt.Sprintf("line %d is so long that git ignores it", n)
		}
	}
	return ""
}

// macros maps the names of attribute macros to the states that they set.
type macros map[string][]string

// effect is a state that a line sets for paths, or whose setting it reverses.
type effect struct {
	state    string
	reversed bool
}

// attribute returns the name and the value of the attribute in a state.
func (s effect) attribute() (name, value string) {
	name, value, _ = strings.Cut(s.state, "=")
	if name != "" && (name[0] == '-' || name[0] == '!') {
		return name[1:], ""
	}
	return name, value
}

// use returns the macro that a state uses. A macro that is negated, or has a value, reverses its states.
func (s effect) use() effect {
	name, _ := s.attribute()
	return effect{name, s.reversed != (name != s.state)}
}

// leading returns the uses of macros that lead, directly or through other macros, to a state for which found is true. It examines each use once,
// even if macros use each other.
func (m macros) leading(found func(effect) bool) map[effect]bool {
	users := map[effect][]effect{} // uses of a macro by other macros
	reached := map[effect]bool{}
	var todo []effect
	reach := func(use effect) {
		if !reached[use] {
			reached[use] = true
			todo = append(todo, use)
		}
	}
	for name, states := range m {
		for _, use := range []effect{{name, false}, {name, true}} {
			for _, state := range states {
				s := effect{state, use.reversed}
				if found(s) {
					reach(use)
				}
				if next := s.use(); m[next.state] != nil {
					users[next] = append(users[next], use)
				}
			}
		}
	}
	for len(todo) > 0 {
		use := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, user := range users[use] {
			reach(user)
		}
	}
	return reached
}

// macros returns git's own macros, the user's, and those of the top of the tree, before and after the commit. Only the
// top can define macros.
func (in *inspection) macros(ctx context.Context) (macros, error) {
	all := macros{}
	for _, l := range in.userLines() {
		if l.macro != "" {
			all[l.macro] = append(all[l.macro], l.states...)
		}
	}
	for _, w := range []*walker{in.parent, in.tree} {
		top, err := w.at(ctx, "")
		if err != nil || top == nil {
			return all, err
		}
		content, err := in.content(ctx, top.entries[".gitattributes"])
		if err != nil {
			return nil, err
		}
		for name, states := range macrosOf(parseAttributes(content, true)) {
			all[name] = append(all[name], states...)
		}
	}
	return all, nil
}

// macrosOf collects the macros that lines define.
func macrosOf(lines []attributeLine) macros {
	all := macros{}
	for _, l := range lines {
		if l.macro != "" {
			all[l.macro] = l.states
		}
	}
	return all
}
