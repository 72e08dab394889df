package ledger

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// Decisions records the user's decisions about commits that a rule holds. Decisions name inner commits. The outer
// commit is built again whenever the branch moves, and a commit that the agent rewrites needs a new decision.
type Decisions struct {
	Version  int        `json:"version"`
	Accepted []Accepted `json:"accepted"`
	Dropped  []Dropped  `json:"dropped"`
}

// Accepted lets some commits pass a rule.
type Accepted struct {
	policy.Acceptance
	Commits []gitops.OID `json:"commits"` // inner commits
	At      time.Time    `json:"at"`
}

// Dropped leaves a commit out.
type Dropped struct {
	Commit  gitops.OID `json:"commit"`  // an inner commit
	Parent  gitops.OID `json:"parent"`  // the first parent of Commit; empty for a root commit
	Subject string     `json:"subject"` // escaped
	At      time.Time  `json:"at"`
}

const decisionsVersion = 1

// Timestamp returns t as state files store it: in UTC, in whole seconds.
func Timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func decisionsFile(dir string) string { return filepath.Join(dir, "decisions.json") }

// ReadDecisions reads the decisions stored in the host state dir.
func ReadDecisions(dir string) (Decisions, error) {
	d := Decisions{Version: decisionsVersion}
	err := readFile(decisionsFile(dir), decisionsVersion, &d)
	return d, err
}

// Write replaces the decisions stored in the host state dir.
func (d Decisions) Write(dir string) error { return writeFile(decisionsFile(dir), d) }

// AcceptedOf returns the rules from which the user exempted an inner commit.
func (d Decisions) AcceptedOf(inner gitops.OID) []policy.Acceptance {
	var list []policy.Acceptance
	for _, a := range d.Accepted {
		if slices.Contains(a.Commits, inner) {
			list = append(list, a.Acceptance)
		}
	}
	return list
}

// DropOf returns the decision to leave an inner commit out, or nil if the user made none.
func (d Decisions) DropOf(inner gitops.OID) *Dropped {
	if i := slices.IndexFunc(d.Dropped, func(x Dropped) bool { return x.Commit == inner }); i >= 0 {
		return &d.Dropped[i]
	}
	return nil
}
