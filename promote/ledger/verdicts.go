package ledger

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Verdict lists the policy gate's findings in one commit.
type Verdict struct {
	Commit   gitops.OID       `json:"commit"`
	Inner    gitops.OID       `json:"inner"`
	Subject  string           `json:"subject"` // escaped
	Findings []policy.Finding `json:"findings"`
	// Late reports that the commit is not checked yet, because the commits before it used up the cycle's budget.
	Late bool `json:"late,omitempty"`
	// Ignores identifies the user's ignore files above the paths of the findings of ignored-path.
	Ignores string `json:"ignores,omitempty"`
}

// Holds reports whether a rule holds the commit. A nil verdict holds nothing.
func (v *Verdict) Holds() bool {
	return v != nil && len(v.rules(func(f policy.Finding) bool { return f.Action == policy.Hold })) > 0
}

// rules returns the rules of some findings, each rule once.
func (v *Verdict) rules(which func(policy.Finding) bool) []string {
	var names []string
	for _, f := range v.Findings {
		if which(f) && (len(names) == 0 || names[len(names)-1] != f.Rule) {
			names = append(names, f.Rule)
		}
	}
	return names
}

// IgnoredPaths returns the paths of the findings of ignored-path, without escaped ones, whose names are not known. found
// reports whether there is such a finding.
func (v *Verdict) IgnoredPaths() (paths []string, found bool) {
	if v == nil {
		return nil, false
	}
	for _, f := range v.Findings {
		if f.Rule != policy.IgnoredPath {
			continue
		}
		found = true
		for _, p := range f.Paths {
			if !strings.Contains(p, `\`) {
				paths = append(paths, p)
			}
		}
	}
	return paths, found
}

// Word returns the verdict as notes show it: "clean", or the rules that hold or flag the commit and the rules that
// the user accepted.
func (v *Verdict) Word() string {
	if v == nil {
		return ""
	}
	if v.Late {
		return "unchecked"
	}
	var parts []string
	named := map[string]bool{} // name each rule once, by its most severe finding
	for _, kind := range []struct {
		word  string
		which func(policy.Finding) bool
	}{
		{"held", func(f policy.Finding) bool { return f.Action == policy.Hold }},
		{"accepted", func(f policy.Finding) bool { return f.Accepted }},
		{"flagged", func(f policy.Finding) bool { return f.Action == policy.Flag }},
	} {
		names := slices.DeleteFunc(v.rules(kind.which), func(rule string) bool { return named[rule] })
		for _, rule := range names {
			named[rule] = true
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

// Verdicts holds the gate's findings in the commits that wait, and in commits that landed with a flag.
type Verdicts struct {
	Version int       `json:"version"`
	Under   string    `json:"under"` // fingerprint of the rules, in a file
	Commits []Verdict `json:"commits"`

	rules        func() string // fingerprint of the current rules
	index        map[gitops.OID]int
	before       map[gitops.OID]*Verdict // verdicts of the file, under any rules
	withFindings int                     // number of commits with findings
	changed      bool
}

const (
	verdictsVersion = 1
	// flagsKept bounds the number of landed commits with a flag in the file. Notes contain all of them.
	flagsKept = 1000
	// detailed bounds the number of commits whose paths and details are stored in addition to the rules, because an
	// agent can write more of them than fit into memory.
	detailed = 2000
)

func verdictsFile(dir string) string { return filepath.Join(dir, "verdicts.json") }

// NoRules is the fingerprint for a reader that asks for no verdict under the current rules.
func NoRules() string { return "" }

// ReadVerdicts reads the verdicts on the commits of a ledger, where rules returns the fingerprint of the current rules.
// Verdicts on waiting commits under other rules are returned only by [Verdicts.Last]. The fingerprint takes time, and is
// computed only for verdicts on waiting commits.
func ReadVerdicts(dir string, rules func() string, l *Ledger) (Verdicts, error) {
	v := Verdicts{Version: verdictsVersion, rules: rules, index: map[gitops.OID]int{}, before: map[gitops.OID]*Verdict{}}
	var stored Verdicts
	if err := readFile(verdictsFile(dir), verdictsVersion, &stored); err != nil {
		return v, err
	}
	others := false
	for _, verdict := range stored.Commits {
		v.before[verdict.Commit] = &verdict
		if l.HasOuter(verdict.Commit) || stored.Under == rules() {
			v.Add(verdict)
		} else {
			others = true
		}
	}
	v.changed = others
	return v, nil
}

// Add stores a verdict, in the place of an older verdict on the same commit.
func (v *Verdicts) Add(verdict Verdict) {
	if len(verdict.Findings) > 0 {
		if v.withFindings++; v.withFindings > detailed {
			verdict = verdict.brief()
		}
	}
	if i, again := v.index[verdict.Commit]; again {
		v.Commits[i] = verdict
	} else {
		v.index[verdict.Commit] = len(v.Commits)
		v.Commits = append(v.Commits, verdict)
	}
	v.changed = true
}

// Of returns the verdict on an outer commit under the current rules, or nil.
func (v *Verdicts) Of(commit gitops.OID) *Verdict {
	if i, ok := v.index[commit]; ok {
		return &v.Commits[i]
	}
	return nil
}

// Last returns the latest verdict on an outer commit under any rules, or nil.
func (v *Verdicts) Last(commit gitops.OID) *Verdict {
	if verdict := v.Of(commit); verdict != nil {
		return verdict
	}
	return v.before[commit]
}

// Unchecked reports whether a pending commit has no verdict under the current rules. A late verdict counts as none as
// soon as the first pending commit is late, since the whole budget of the next cycle is then free for it.
func (v *Verdicts) Unchecked(tail []Pair, commit gitops.OID) bool {
	verdict := v.Of(commit)
	if verdict == nil || !verdict.Late {
		return verdict == nil
	}
	first := v.Of(tail[0].Outer)
	return first != nil && first.Late
}

// Before returns the verdict on an outer commit that the file contained, under any rules, or nil.
func (v *Verdicts) Before(commit gitops.OID) *Verdict { return v.before[commit] }

// flagged returns the verdicts with findings on landed commits.
func (v *Verdicts) flagged(l *Ledger) []Verdict {
	var list []Verdict
	for _, verdict := range v.Commits {
		if len(verdict.Findings) > 0 && l.HasOuter(verdict.Commit) {
			list = append(list, verdict)
		}
	}
	return list
}

// brief returns the verdict without paths and details.
func (v Verdict) brief() Verdict {
	found := v.Findings
	v.Findings = nil
	for _, f := range found {
		f.Paths, f.Detail = []string{}, ""
		v.Findings = append(v.Findings, f)
	}
	return v
}

// Save writes the verdicts on waiting commits, and on landed commits with a flag.
func (v *Verdicts) Save(dir string, l *Ledger) error {
	if !v.changed {
		return nil
	}
	kept := Verdicts{Version: v.Version, Under: v.rules()}
	flags := v.flagged(l)
	for _, verdict := range flags[max(0, len(flags)-flagsKept):] {
		kept.Commits = append(kept.Commits, verdict.brief())
	}
	for _, t := range l.Tail {
		if verdict := v.Of(t.Outer); verdict != nil {
			kept.Commits = append(kept.Commits, *verdict)
		}
	}
	v.changed = false
	return writeFile(verdictsFile(dir), kept)
}

// Flagged names the rules with findings in a landed commit.
type Flagged struct {
	Commit gitops.OID `json:"commit"`
	Rules  []string   `json:"rules"`
}

// Flagged returns the landed commits with findings, oldest first. The result is never nil.
func (v *Verdicts) Flagged(l *Ledger) []Flagged {
	list := []Flagged{}
	for _, verdict := range v.flagged(l) {
		list = append(list, Flagged{verdict.Commit, verdict.rules(func(policy.Finding) bool { return true })})
	}
	return list
}
