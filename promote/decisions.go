package promote

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// decisions are what the user decided about commits that a rule holds. They name inner commits: an outer
// one is made anew whenever the branch moves, and what the agent rewrites is to be decided again.
type decisions struct {
	Version  int        `json:"version"`
	Accepted []Accepted `json:"accepted"`
	Dropped  []Dropped  `json:"dropped"`
}

// Accepted lets some commits pass a rule.
type Accepted struct {
	policy.Acceptance
	Commits []gitops.OID `json:"commits"` // inner ones
	At      time.Time    `json:"at"`
}

// Dropped leaves a commit out.
type Dropped struct {
	Commit  gitops.OID `json:"commit"`  // an inner one
	Parent  gitops.OID `json:"parent"`  // the first one; empty if there is none
	Subject string     `json:"subject"` // fit to be shown
	At      time.Time  `json:"at"`
}

const decisionsVersion = 1

// now is the time as files of the host state have it.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func decisionsFile(dir string) string { return filepath.Join(dir, "decisions.json") }

func readDecisions(dir string) (decisions, error) {
	d := decisions{Version: decisionsVersion}
	err := readState(decisionsFile(dir), decisionsVersion, &d)
	return d, err
}

func (d decisions) write(dir string) error { return writeState(decisionsFile(dir), d) }

// accepted is what an inner commit is let pass.
func (d decisions) accepted(inner gitops.OID) []policy.Acceptance {
	var list []policy.Acceptance
	for _, a := range d.Accepted {
		if slices.Contains(a.Commits, inner) {
			list = append(list, a.Acceptance)
		}
	}
	return list
}

// dropped is the decision to leave an inner commit out; nil if there is none.
func (d decisions) dropped(inner gitops.OID) *Dropped {
	if i := slices.IndexFunc(d.Dropped, func(x Dropped) bool { return x.Commit == inner }); i >= 0 {
		return &d.Dropped[i]
	}
	return nil
}
