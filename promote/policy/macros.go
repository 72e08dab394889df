package policy

import (
	"context"
	"strings"
)

// macros are the states that macros of attributes give, by their names.
type macros map[string][]string

// saying is a state that a line gives to paths, or takes back.
type saying struct {
	state string
	back  bool
}

// attribute returns the name and the value of what a state is about.
func (s saying) attribute() (name, value string) {
	name, value, _ = strings.Cut(s.state, "=")
	if name != "" && (name[0] == '-' || name[0] == '!') {
		return name[1:], ""
	}
	return name, value
}

// use is the macro that a state uses. One that is negated, or has a value, takes back what the macro says.
func (s saying) use() saying {
	name, _ := s.attribute()
	return saying{name, s.back != (name != s.state)}
}

// leading returns the uses of macros through which something is said, however many macros use each other: each is looked
// at once.
func (m macros) leading(found func(saying) bool) map[saying]bool {
	users := map[saying][]saying{} // of a macro
	reached := map[saying]bool{}
	var todo []saying
	reach := func(use saying) {
		if !reached[use] {
			reached[use] = true
			todo = append(todo, use)
		}
	}
	for name, states := range m {
		for _, use := range []saying{{name, false}, {name, true}} {
			for _, state := range states {
				s := saying{state, use.back}
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

// macros are git's own and those of the tree's top, where alone they can be defined, before and after the commit.
func (in *inspection) macros(ctx context.Context) (macros, error) {
	all := macros{"binary": {"-diff", "-merge", "-text"}}
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
