package attribute

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// Macros maps the names of attribute macros to the states that they set.
type Macros map[string][]string

// Effect is a state that a line sets for paths, or whose setting it reverses.
type Effect struct {
	State    string
	Reversed bool
}

// Attribute returns the name and the value of the attribute in a state.
func (s Effect) Attribute() (name, value string) {
	name, value, _ = strings.Cut(s.State, "=")
	if name != "" && (name[0] == '-' || name[0] == '!') {
		return name[1:], ""
	}
	return name, value
}

// Use returns the macro that a state uses. A macro that is negated, or has a value, reverses its states.
func (s Effect) Use() Effect {
	name, _ := s.Attribute()
	return Effect{name, s.Reversed != (name != s.State)}
}

// Leading returns the uses of macros that lead, directly or through other macros, to a state for which found is true. It examines each use once,
// even if macros use each other.
func (m Macros) Leading(found func(Effect) bool) map[Effect]bool {
	users := map[Effect][]Effect{} // uses of a macro by other macros
	reached := map[Effect]bool{}
	var todo []Effect
	reach := func(use Effect) {
		if !reached[use] {
			reached[use] = true
			todo = append(todo, use)
		}
	}
	for name, states := range m {
		for _, use := range []Effect{{name, false}, {name, true}} {
			for _, state := range states {
				s := Effect{state, use.Reversed}
				if found(s) {
					reach(use)
				}
				if next := s.Use(); m[next.State] != nil {
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

// MacrosOf collects the macros that lines define.
func MacrosOf(lines []Line) Macros {
	all := Macros{}
	for _, l := range lines {
		if l.Macro != "" {
			all[l.Macro] = l.States
		}
	}
	return all
}

// Binary is the macro that git itself defines.
var Binary = Line{Macro: "binary", States: []string{"-diff", "-merge", "-text"}}

// Placed is a line with the folder of the file.
type Placed struct {
	Line
	Below string // ends in a slash; empty for the top and for the user's files
}

// Resolve returns the attributes of a path with their values, or "set", "unset" or "unspecified". lines are in
// ascending precedence. If separate is set, it returns the attributes that each line alone would set, and assumes that
// each macro is used.
func Resolve(lines []Placed, path string, folded, separate bool) (all []map[string]string) {
	definitions, match := Macros{}, ignore.AttributeMatches
	for _, l := range append([]Placed{{Line: Binary}}, lines...) {
		if l.Macro != "" {
			definitions[l.Macro] = l.States
		}
	}
	if folded {
		match = func(pattern, path string) bool {
			return ignore.AttributeMatches(strings.ToLower(pattern), strings.ToLower(path))
		}
	}
	found := map[string]string{}
	for _, l := range slices.Backward(lines) {
		if l.Macro != "" && !separate || l.Macro == "" && (len(l.Pattern) >= LineLimit || !match(l.Pattern, strings.TrimPrefix(path, l.Below))) {
			continue
		}
		if definitions.expand(l.States, found); separate {
			all, found = append(all, found), map[string]string{}
		}
	}
	return append(all, found)
}

// Set returns the attributes that a line alone sets, as [Resolve] does.
func (m Macros) Set(l Line) map[string]string {
	found := map[string]string{}
	m.expand(l.States, found)
	return found
}

// expand adds the attributes that states set to those that lines of higher precedence have set.
func (m Macros) expand(states []string, found map[string]string) {
	for _, state := range slices.Backward(states) {
		attribute, _ := Effect{State: state}.Attribute()
		if _, known := found[attribute]; known {
			continue
		}
		_, value, valued := strings.Cut(state, "=")
		switch {
		case state[0] == '-':
			value = "unset"
		case state[0] == '!':
			value = "unspecified"
		case !valued:
			value = "set"
		}
		if found[attribute] = value; state == attribute {
			m.expand(m[attribute], found)
		}
	}
}
