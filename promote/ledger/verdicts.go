package ledger

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Verdict is what the policy gate found in one commit.
type Verdict struct {
	Commit   gitops.OID       `json:"commit"`
	Inner    gitops.OID       `json:"inner"`
	Subject  string           `json:"subject"` // escaped
	Findings []policy.Finding `json:"findings"`
	// Late reports that the commits before it were enough work for one cycle: it is not checked yet.
	Late bool `json:"late,omitempty"`
}

// Holds reports whether a rule holds the commit. No rule holds an unknown commit (nil).
func (v *Verdict) Holds() bool {
	return v != nil && len(v.rules(func(f policy.Finding) bool { return f.Action == policy.Hold })) > 0
}

// rules returns the rules of some findings, each once.
func (v *Verdict) rules(which func(policy.Finding) bool) []string {
	var names []string
	for _, f := range v.Findings {
		if which(f) && (len(names) == 0 || names[len(names)-1] != f.Rule) {
			names = append(names, f.Rule)
		}
	}
	return names
}

// Word returns the verdict as notes have it: "clean", or the rules that hold or flag the commit and those that the
// user accepted.
func (v *Verdict) Word() string {
	if v == nil {
		return ""
	}
	if v.Late {
		return "unchecked"
	}
	var parts []string
	said := map[string]bool{} // once is enough: what holds is worse than a flag
	for _, kind := range []struct {
		word  string
		which func(policy.Finding) bool
	}{
		{"held", func(f policy.Finding) bool { return f.Action == policy.Hold }},
		{"accepted", func(f policy.Finding) bool { return f.Accepted }},
		{"flagged", func(f policy.Finding) bool { return f.Action == policy.Flag }},
	} {
		names := slices.DeleteFunc(v.rules(kind.which), func(rule string) bool { return said[rule] })
		for _, rule := range names {
			said[rule] = true
		}
		if len(names) > 0 {
			parts = append(parts, kind.word+" "+strings.Join(names, ", "))
		}
	}
	if len(parts) == 0 {
		return "clean"
	}
	return strings.Join(parts, "; ")
}

// Verdicts keep what the gate found in the commits that wait, and in those that landed with a flag.
type Verdicts struct {
	Version int       `json:"version"`
	Under   string    `json:"under"` // fingerprint of the rules
	Commits []Verdict `json:"commits"`

	index   map[gitops.OID]int
	before  map[gitops.OID]*Verdict // found under other rules
	told    int                     // number of commits with findings
	changed bool
}

const (
	verdictsVersion = 1
	// flagsKept bounds the landed commits with a flag that are kept; their notes have everything.
	flagsKept = 1000
	// toldWhole bounds the commits of which paths and details are kept, beside the rules: an agent can write more
	// of them than fit into memory.
	toldWhole = 2000
)

func verdictsFile(dir string) string { return filepath.Join(dir, "verdicts.json") }

// ReadVerdicts reads the verdicts on the commits of a ledger, where under is the fingerprint of the present rules. A
// verdict on a waiting commit under other rules is only kept for [Verdicts.Last].
func ReadVerdicts(dir, under string, l *Ledger) (Verdicts, error) {
	v := Verdicts{Version: verdictsVersion, Under: under, index: map[gitops.OID]int{}, before: map[gitops.OID]*Verdict{}}
	stored := Verdicts{Under: under}
	if err := readFile(verdictsFile(dir), verdictsVersion, &stored); err != nil {
		return v, err
	}
	for _, said := range stored.Commits {
		v.before[said.Commit] = &said
		if stored.Under == under || l.HasOuter(said.Commit) {
			v.Add(said)
		}
	}
	v.changed = stored.Under != under
	return v, nil
}

// Add keeps a verdict in the place of an older one on the same commit.
func (v *Verdicts) Add(said Verdict) {
	if len(said.Findings) > 0 {
		if v.told++; v.told > toldWhole {
			said = said.brief()
		}
	}
	if i, again := v.index[said.Commit]; again {
		v.Commits[i] = said
	} else {
		v.index[said.Commit] = len(v.Commits)
		v.Commits = append(v.Commits, said)
	}
	v.changed = true
}

// Of returns the verdict on an outer commit under the present rules; nil if there is none.
func (v *Verdicts) Of(commit gitops.OID) *Verdict {
	if i, ok := v.index[commit]; ok {
		return &v.Commits[i]
	}
	return nil
}

// Last returns the last verdict on an outer commit, whatever the rules were; nil if there is none.
func (v *Verdicts) Last(commit gitops.OID) *Verdict {
	if said := v.Of(commit); said != nil {
		return said
	}
	return v.before[commit]
}

// Unchecked reports whether a pending commit has no verdict under the present rules. A late one counts as unchecked once
// nothing else waits before it: then a cycle has its whole budget for it.
func (v *Verdicts) Unchecked(tail []Pair, commit gitops.OID) bool {
	said := v.Of(commit)
	if said == nil || !said.Late {
		return said == nil
	}
	first := v.Of(tail[0].Outer)
	return first != nil && first.Late
}

// Before returns the verdict that the file held on an outer commit, whatever the rules were; nil if it held none.
func (v *Verdicts) Before(commit gitops.OID) *Verdict { return v.before[commit] }

// flagged returns the verdicts with findings on landed commits.
func (v *Verdicts) flagged(l *Ledger) []Verdict {
	var list []Verdict
	for _, said := range v.Commits {
		if len(said.Findings) > 0 && l.HasOuter(said.Commit) {
			list = append(list, said)
		}
	}
	return list
}

// brief leaves out paths and details.
func (v Verdict) brief() Verdict {
	found := v.Findings
	v.Findings = nil
	for _, f := range found {
		f.Paths, f.Detail = []string{}, ""
		v.Findings = append(v.Findings, f)
	}
	return v
}

// Save writes the verdicts on commits that wait and on landed ones with a flag.
func (v *Verdicts) Save(dir string, l *Ledger) error {
	if !v.changed {
		return nil
	}
	kept := Verdicts{Version: v.Version, Under: v.Under}
	flags := v.flagged(l)
	for _, said := range flags[max(0, len(flags)-flagsKept):] {
		kept.Commits = append(kept.Commits, said.brief())
	}
	for _, t := range l.Tail {
		if said := v.Of(t.Outer); said != nil {
			kept.Commits = append(kept.Commits, *said)
		}
	}
	v.changed = false
	return writeFile(verdictsFile(dir), kept)
}

// Flagged names the rules that found something in a landed commit.
type Flagged struct {
	Commit gitops.OID `json:"commit"`
	Rules  []string   `json:"rules"`
}

// Flagged returns the landed commits with findings, oldest first. The result is never nil.
func (v *Verdicts) Flagged(l *Ledger) []Flagged {
	list := []Flagged{}
	for _, said := range v.flagged(l) {
		list = append(list, Flagged{said.Commit, said.rules(func(policy.Finding) bool { return true })})
	}
	return list
}
