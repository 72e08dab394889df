package ledger

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// GateResult lists the policy gate's findings in one commit.
type GateResult struct {
	Commit   gitops.OID       `json:"commit"`
	Inner    gitops.OID       `json:"inner"`
	Subject  string           `json:"subject"` // escaped
	Findings []policy.Finding `json:"findings"`
	// Late reports that the commit is not checked yet, because the commits before it used up the cycle's budget.
	Late bool `json:"late,omitempty"`
	// Ignores identifies the user's ignore files above the paths of the findings of ignored-path.
	Ignores string `json:"ignores,omitempty"`
	// Patch is the patch-id of the commit, or one of the marks below; empty if nobody has computed it.
	Patch string `json:"patch,omitempty"`
}

const (
	noPatch    = "-" // the commit has no patch
	patchTakes = "?" // computing the patch-id takes so long that it is done only for the note of a verdict
	// patchTime bounds the time for the patch-ids of all commits that wait.
	patchTime = 300 * time.Millisecond
)

// AddPatches adds the missing patch-ids of waiting commits. The note of a verdict contains the patch-id of its commit. If it is known before,
// a verdict and the landing after it take less time.
func (v *GateResults) AddPatches(ctx context.Context, repo *gitops.Repository, l *Ledger) {
	var unknown []*GateResult
	var ids []gitops.OID
	for _, t := range l.Tail {
		if result := v.Of(t.Outer); result != nil && result.Patch == "" {
			unknown, ids = append(unknown, result), append(ids, t.Outer)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patchTime)
	defer cancel()
	patches, err := repo.PatchIDs(bounded, ids)
	for _, result := range unknown {
		if result.Patch = cmp.Or(patches[result.Commit], noPatch); err != nil {
			result.Patch = patchTakes
		}
		v.changed = true
	}
}

// PatchOf returns the patch-id of an outer commit, which is empty if the commit has no patch.
func (v *GateResults) PatchOf(commit gitops.OID) (patch string, known bool) {
	result := v.Last(commit)
	if result == nil || result.Patch == "" || result.Patch == patchTakes {
		return "", false
	}
	return strings.TrimSuffix(result.Patch, noPatch), true
}

// Holds reports whether a rule holds the commit. A nil result holds nothing.
func (v *GateResult) Holds() bool {
	return v != nil && len(v.rules(func(f policy.Finding) bool { return f.Action == policy.Hold })) > 0
}

// rules returns the rules of some findings, each rule once.
func (v *GateResult) rules(which func(policy.Finding) bool) []string {
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
func (v *GateResult) IgnoredPaths() (paths []string, found bool) {
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

// Word returns the result as notes show it: "clean", or the rules that hold or flag the commit and the rules that
// the user accepted.
func (v *GateResult) Word() string {
	if v == nil {
		return ""
	}
	if v.Late {
		return "unchecked"
	}
	var parts []string
	named := gitops.Set[string]{} // name each rule once, by its most severe finding
	for _, kind := range []struct {
		word  string
		which func(policy.Finding) bool
	}{
		{"held", func(f policy.Finding) bool { return f.Action == policy.Hold }},
		{"accepted", func(f policy.Finding) bool { return f.Accepted }},
		{"flagged", func(f policy.Finding) bool { return f.Action == policy.Flag }},
	} {
		names := slices.DeleteFunc(v.rules(kind.which), func(rule string) bool { return named[rule] })
		named.Add(names...)
		if len(names) > 0 {
			parts = append(parts, kind.word+" "+strings.Join(names, ", "))
		}
	}
	if len(parts) == 0 {
		return "clean"
	}
	return strings.Join(parts, "; ")
}

// GateResults holds the gate's findings in the commits that wait, and in commits that landed with a flag.
type GateResults struct {
	Version int          `json:"version"`
	Under   string       `json:"under"` // fingerprint of the rules, in a file
	Commits []GateResult `json:"commits"`

	rules        func() string // fingerprint of the current rules
	index        map[gitops.OID]int
	before       map[gitops.OID]*GateResult // results of the file, under any rules
	withFindings int                        // number of commits with findings
	changed      bool
}

const (
	// flagsKept bounds the number of landed commits with a flag in the file. Notes contain all of them.
	flagsKept = 1000
	// detailed bounds the number of commits whose paths and details are stored in addition to the rules, because an
	// agent can write more of them than fit into memory.
	detailed = 2000
)

func gateFile(dir string) string { return filepath.Join(dir, "gate.json") }

// NoRules is the fingerprint for a reader that asks for no result under the current rules.
func NoRules() string { return "" }

// ReadGateResults reads the results on the commits of a ledger, where rules returns the fingerprint of the current rules.
// Results on waiting commits under other rules are returned only by [GateResults.Last]. The fingerprint takes time, and is
// computed only for results on waiting commits.
func ReadGateResults(dir string, rules func() string, l *Ledger) (GateResults, error) {
	v := GateResults{Version: version, rules: rules, index: map[gitops.OID]int{}, before: map[gitops.OID]*GateResult{}}
	var stored GateResults
	if err := readFile(gateFile(dir), &stored, &stored.Version); err != nil {
		return v, err
	}
	others := false
	for _, result := range stored.Commits {
		v.before[result.Commit] = &result
		if l.HasOuter(result.Commit) || stored.Under == rules() {
			v.Add(result)
		} else {
			others = true
		}
	}
	v.changed = others
	return v, nil
}

// Clone returns a copy that has results of its own.
func (v GateResults) Clone() GateResults {
	v.Commits, v.index = slices.Clone(v.Commits), maps.Clone(v.index)
	return v
}

// Add stores a result, in the place of an older result on the same commit.
func (v *GateResults) Add(result GateResult) {
	if len(result.Findings) > 0 {
		if v.withFindings++; v.withFindings > detailed {
			result = result.brief()
		}
	}
	if i, again := v.index[result.Commit]; again {
		v.Commits[i] = result
	} else {
		v.index[result.Commit] = len(v.Commits)
		v.Commits = append(v.Commits, result)
	}
	v.changed = true
}

// Of returns the result on an outer commit under the current rules, or nil.
func (v *GateResults) Of(commit gitops.OID) *GateResult {
	if i, ok := v.index[commit]; ok {
		return &v.Commits[i]
	}
	return nil
}

// Last returns the latest result on an outer commit under any rules, or nil.
func (v *GateResults) Last(commit gitops.OID) *GateResult {
	if result := v.Of(commit); result != nil {
		return result
	}
	return v.before[commit]
}

// Unchecked reports whether a pending commit has no result under the current rules. A late result does not count if the first pending commit
// is late as well, since the next cycle then has its whole budget for the late commits.
func (v *GateResults) Unchecked(tail []Pair, commit gitops.OID) bool {
	result := v.Of(commit)
	if result == nil || !result.Late {
		return result == nil
	}
	first := v.Of(tail[0].Outer)
	return first != nil && first.Late
}

// Before returns the result on an outer commit that the file contained, under any rules, or nil.
func (v *GateResults) Before(commit gitops.OID) *GateResult { return v.before[commit] }

// flagged returns the results with findings on landed commits.
func (v *GateResults) flagged(l *Ledger) []GateResult {
	var list []GateResult
	for _, result := range v.Commits {
		if len(result.Findings) > 0 && l.HasOuter(result.Commit) {
			list = append(list, result)
		}
	}
	return list
}

// brief returns the result without paths and details.
func (v GateResult) brief() GateResult {
	found := v.Findings
	v.Findings = nil
	for _, f := range found {
		f.Paths, f.Detail = []string{}, ""
		v.Findings = append(v.Findings, f)
	}
	return v
}

// Save writes the results on waiting commits, and on landed commits with a flag.
func (v *GateResults) Save(dir string, l *Ledger) error {
	if !v.changed {
		return nil
	}
	kept := GateResults{Version: v.Version, Under: v.rules()}
	flags := v.flagged(l)
	for _, result := range flags[max(0, len(flags)-flagsKept):] {
		kept.Commits = append(kept.Commits, result.brief())
	}
	for _, t := range l.Tail {
		if result := v.Of(t.Outer); result != nil {
			kept.Commits = append(kept.Commits, *result)
		}
	}
	v.changed = false
	return writeFile(gateFile(dir), kept)
}

// Flagged names the rules with findings in a landed commit.
type Flagged struct {
	Commit gitops.OID `json:"commit"`
	Rules  []string   `json:"rules"`
}

// Flagged returns the landed commits with findings, oldest first. The result is never nil.
func (v *GateResults) Flagged(l *Ledger) []Flagged {
	list := []Flagged{}
	for _, result := range v.flagged(l) {
		list = append(list, Flagged{result.Commit, result.rules(func(policy.Finding) bool { return true })})
	}
	return list
}

// IgnoredAnew returns the pending commits with a finding of ignored-path that must be checked again, because the user's
// ignore files above its paths have changed, or because the user's index has one of the paths now. If there is one, it
// also returns the commits whose findings are stored without paths.
func (v *GateResults) IgnoredAnew(ctx context.Context, ignores *ignore.Rules, pending []Pair) (map[gitops.OID]bool, error) {
	again, of := gitops.Set[gitops.OID]{}, map[string][]gitops.OID{}
	var without []gitops.OID
	for _, t := range pending {
		result := v.Of(t.Outer)
		paths, found := result.IgnoredPaths()
		switch {
		case !found:
		case len(paths) == 0:
			without = append(without, t.Outer)
		case result.Ignores != ignores.StateAbove(paths):
			again[t.Outer] = true
		}
		for _, p := range paths {
			of[p] = append(of[p], t.Outer)
		}
	}
	tracked, err := ignores.Tracked(ctx, slices.Collect(maps.Keys(of)))
	for _, p := range tracked {
		again.Add(of[p]...)
	}
	if len(again) > 0 {
		again.Add(without...)
	}
	return again, err
}
