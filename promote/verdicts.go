package promote

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Verdict is what the gate said of one commit.
type Verdict struct {
	Commit   gitops.OID       `json:"commit"`
	Inner    gitops.OID       `json:"inner"`
	Subject  string           `json:"subject"` // fit to be shown
	Findings []policy.Finding `json:"findings"`
	// Late reports that the commits before it were enough work for one cycle: it is not checked yet.
	Late bool `json:"late,omitempty"`
}

// holds tells whether a rule holds the commit; of an unknown commit, no rule does.
func (v *Verdict) holds() bool {
	return v != nil && len(v.rules(func(f policy.Finding) bool { return f.Action == policy.Hold })) > 0
}

// rules names the rules of some findings, each once.
func (v *Verdict) rules(which func(policy.Finding) bool) []string {
	var names []string
	for _, f := range v.Findings {
		if which(f) && (len(names) == 0 || names[len(names)-1] != f.Rule) {
			names = append(names, f.Rule)
		}
	}
	return names
}

// word says a verdict as notes do: "clean", or which rules hold or flag the commit and which the user let pass.
func (v *Verdict) word() string {
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

// verdicts remember what the gate said of the commits that wait, and of those that landed with a flag.
type verdicts struct {
	Version int       `json:"version"`
	Under   string    `json:"under"` // fingerprint of the rules
	Commits []Verdict `json:"commits"`

	index   map[gitops.OID]int
	before  map[gitops.OID]*Verdict // said under other rules
	told    int                     // how many commits something was found in
	changed bool
}

const (
	verdictsVersion = 1
	// flagsKept bounds how many landed commits with a flag are remembered; their notes have it all.
	flagsKept = 1000
	// toldWhole bounds of how many commits more is kept than which rules found something: an agent can write
	// more of them than anybody has memory for.
	toldWhole = 2000
)

func verdictsFile(dir string) string { return filepath.Join(dir, "verdicts.json") }

// readVerdicts reads what was said of the commits of a ledger. What was said of waiting ones under other rules
// is only remembered as that.
func readVerdicts(dir, under string, l *ledger) (verdicts, error) {
	v := verdicts{Version: verdictsVersion, Under: under, index: map[gitops.OID]int{}, before: map[gitops.OID]*Verdict{}}
	stored := verdicts{Under: under}
	if err := readState(verdictsFile(dir), verdictsVersion, &stored); err != nil {
		return v, err
	}
	for _, said := range stored.Commits {
		v.before[said.Commit] = &said
		if stored.Under == under || l.outer[said.Commit] {
			v.add(said)
		}
	}
	v.changed = stored.Under != under
	return v, nil
}

func (v *verdicts) add(said Verdict) {
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

// freshCycle reports that nothing waits before the first commit that is not checked yet: a cycle has its whole budget for it.
func (v *verdicts) freshCycle(tail []pair) bool {
	if len(tail) == 0 {
		return false
	}
	said := v.of(tail[0].outer)
	return said != nil && said.Late
}

// of is what was said of an outer commit under the present rules; nil if nothing was.
func (v *verdicts) of(commit gitops.OID) *Verdict {
	if i, ok := v.index[commit]; ok {
		return &v.Commits[i]
	}
	return nil
}

// last is what was said of an outer commit last, whatever the rules were; nil if nothing was.
func (v *verdicts) last(commit gitops.OID) *Verdict {
	if said := v.of(commit); said != nil {
		return said
	}
	return v.before[commit]
}

// flagged lists what was found in commits that have landed.
func (v *verdicts) flagged(l *ledger) []Verdict {
	var list []Verdict
	for _, said := range v.Commits {
		if len(said.Findings) > 0 && l.outer[said.Commit] {
			list = append(list, said)
		}
	}
	return list
}

// brief leaves out where and what was found.
func (v Verdict) brief() Verdict {
	found := v.Findings
	v.Findings = nil
	for _, f := range found {
		f.Paths, f.Detail = []string{}, ""
		v.Findings = append(v.Findings, f)
	}
	return v
}

// save keeps what is said of commits that wait, and of those landed with a flag.
func (v *verdicts) save(dir string, l *ledger) error {
	if !v.changed {
		return nil
	}
	kept := verdicts{Version: v.Version, Under: v.Under}
	flags := v.flagged(l)
	for _, said := range flags[max(0, len(flags)-flagsKept):] {
		kept.Commits = append(kept.Commits, said.brief())
	}
	for _, t := range l.tail {
		if said := v.of(t.outer); said != nil {
			kept.Commits = append(kept.Commits, *said)
		}
	}
	v.changed = false
	return writeState(verdictsFile(dir), kept)
}
