package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/promote/checks"
)

// Requirement is something that the evidence of each commit must show.
type Requirement struct {
	text string
	// met returns nil if the verdict on a commit meets the requirement, and otherwise an error with the reason.
	met func(Verdict) error
}

// String returns the requirement as the user typed it.
func (r Requirement) String() string { return r.text }

// requirementWords are the requirements, as errors show them.
const requirementWords = "signed, commit, contained, exact, network=VALUE, review, closed, check=COMMAND"

// ParseRequirements reads lists that are separated by commas. A command may contain commas, so "check=" takes the rest of its list. Of
// equal requirements, it returns one.
func ParseRequirements(lists ...string) ([]Requirement, error) {
	var all []Requirement
	for _, text := range split(lists) {
		if slices.ContainsFunc(all, func(r Requirement) bool { return r.text == text }) {
			continue
		}
		name, value, valued := strings.Cut(text, "=")
		with, plain := valuedRequirements[name], requirements[name]
		switch {
		case plain != nil && !valued:
			all = append(all, Requirement{text, plain})
		case with != nil && value != "":
			all = append(all, Requirement{text, func(v Verdict) error { return with(v, value) }})
		default:
			return nil, fmt.Errorf("%q is not one of %s", text, requirementWords)
		}
	}
	return all, nil
}

// split returns the words of lists, without empty ones.
func split(lists []string) (all []string) {
	for _, list := range lists {
		for list != "" {
			word, rest, _ := strings.Cut(list, ",")
			if strings.HasPrefix(strings.TrimSpace(word), "check=") {
				word, rest = list, ""
			}
			if word = strings.TrimSpace(word); word != "" {
				all = append(all, word)
			}
			list = rest
		}
	}
	return all
}

// Requirements returns the words of a list of requirements, those with a value up to the "=".
func Requirements() []string {
	words := slices.Collect(maps.Keys(requirements))
	for name := range valuedRequirements {
		words = append(words, name+"=")
	}
	slices.Sort(words)
	return words
}

var requirements = map[string]func(Verdict) error{
	"signed": func(v Verdict) error {
		if v.listed && v.unlisted != nil {
			return missing("the key %s %v", v.Fingerprint, v.unlisted)
		}
		return nil // the signature was verified before
	},
	"commit": func(v Verdict) error {
		if v.By != ByCommit {
			return missing("no statement about this commit, but one about commit %.12s", v.Statement.Commit())
		}
		return nil
	},
	"contained": func(v Verdict) error {
		p := v.Statement.Predicate.Prison
		if p.Backend == "" || p.UID <= 0 || slices.Contains(p.Weaker, "no-call-filter") {
			return fmt.Errorf("the prison was not complete (%s)", strings.Join(append([]string{"backend " + p.Backend}, p.Weaker...), ", "))
		}
		return nil
	},
	"exact": func(v Verdict) error {
		switch {
		case v.By == ByPatch:
			return fmt.Errorf("the tree is another one than that of commit %.12s, which landed", v.Statement.Commit())
		case v.Statement.Predicate.Landed.Tree != "exact":
			return fmt.Errorf("the tree is not the agent's, but %s", v.Statement.Predicate.Landed.Tree)
		}
		return nil
	},
	"review": func(v Verdict) error {
		if len(v.Statement.Predicate.Landed.Reviewers) == 0 {
			return fmt.Errorf("nobody approved it before it landed")
		}
		return nil
	},
	"closed": func(v Verdict) error {
		if !v.Chain.Closed {
			return fmt.Errorf("the session is not closed, so that newer statements may be missing")
		}
		return nil
	},
}

var valuedRequirements = map[string]func(Verdict, string) error{
	"network": func(v Verdict, want string) error {
		if is := v.Statement.Predicate.Prison.Network; is != want {
			return fmt.Errorf("the network was %s", is)
		}
		return nil
	},
	"check": func(v Verdict, command string) error {
		digest, failed := checks.Digest(command), false
		for _, c := range v.Statement.Predicate.Landed.Checks {
			if c.Command != digest || c.Tree != v.Tree {
				continue
			}
			if c.Exit == 0 {
				return nil
			}
			failed = true
		}
		if failed {
			return fmt.Errorf("the check %q failed", command)
		}
		return missing("no result of the check %q on this tree", command)
	},
}
