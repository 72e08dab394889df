// Package sets has the sets of rules that ship with the program, such as "@npm" for the hosts of a package registry: see [Expand].
package sets

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/prison/egress"
	"github.com/git-airlock/git-airlock/words"
)

//go:embed sets.txt
var file string

// all maps the name of each set, which begins with "@", to the texts of its rules. The file is the program's own: a mistake
// in it fails a test.
var all = sync.OnceValue(func() map[string][]string {
	sets, name := map[string][]string{}, ""
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		_, known := sets[line]
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '@' && !known:
			name = line
			sets[name] = []string{}
		case line[0] == '@':
			sets[name] = append(sets[name], sets[line]...)
		default:
			sets[name] = append(sets[name], line)
		}
	}
	return sets
})

// Names returns the names of the sets of rules that ship with the program. Each begins with "@".
func Names() []string { return slices.Sorted(maps.Keys(all())) }

// Expand returns the rules of a set for the set's name, and the rule itself for any other text. It refuses a text that [egress.ParseRule]
// refuses, and a set that does not exist.
func Expand(text string) ([]egress.Rule, error) {
	texts := []string{text}
	if name := strings.TrimSpace(text); strings.HasPrefix(name, "@") {
		var known bool
		if texts, known = all()[name]; !known {
			return nil, fmt.Errorf("rule %q: no such set: the sets are %s", words.Clip(name, 80), strings.Join(Names(), ", "))
		}
	}
	if target, _, _ := strings.Cut(texts[0], ":"); target == "*" || target == "**" {
		return nil, fmt.Errorf("rule %q covers every host", words.Clip(text, 80))
	}
	var rules []egress.Rule
	for _, t := range texts {
		r, err := egress.ParseRule(t)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}
