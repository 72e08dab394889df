package ledger

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Decisions records the user's decisions about waiting commits. Decisions name inner commits. The outer
// commit is built again whenever the branch moves, and a commit that the agent rewrites needs a new decision.
type Decisions struct {
	Version  int        `json:"version"`
	Accepted []Accepted `json:"accepted"`
	Dropped  []Dropped  `json:"dropped"`
	Reviewed []Reviewed `json:"reviewed,omitempty"`
}

// Reviewed is the user's newest verdict on an inner commit.
type Reviewed struct {
	review.Verdict
	Digest  string     `json:"digest"`           // see [review.Digest]; computed when the commit is gone
	Subject string     `json:"subject"`          // escaped
	Written string     `json:"written"`          // the author's date
	Number  int        `json:"number,omitempty"` // of the ref that names the rejected commit; 0: none
	Noted   gitops.OID `json:"noted,omitempty"`  // the outer commit whose note names the reviewer
	// Unwritten reports that the notes do not have the verdict yet. The next cycle writes it.
	Unwritten bool `json:"unwritten,omitempty"`
	// Earlier lists older verdicts that the notes do not have yet either, because a command was killed before its cycle.
	Earlier []review.Verdict `json:"earlier,omitempty"`
}

// Owed returns the verdicts that the notes do not have yet.
func (r *Reviewed) Owed() (owed []*review.Verdict) {
	for i := range r.Earlier {
		owed = append(owed, &r.Earlier[i])
	}
	if r.Unwritten {
		owed = append(owed, &r.Verdict)
	}
	return owed
}

// Accepted is the user's decision that some commits pass a rule.
type Accepted struct {
	policy.Acceptance
	Commits []gitops.OID `json:"commits"` // inner commits
	At      time.Time    `json:"at"`
}

// Dropped is the user's decision to leave a commit out.
type Dropped struct {
	Commit  gitops.OID `json:"commit"`  // an inner commit
	Parent  gitops.OID `json:"parent"`  // the first parent of Commit; empty for a root commit
	Subject string     `json:"subject"` // escaped
	At      time.Time  `json:"at"`
}

// Timestamp returns t as state files store it: in UTC, in whole seconds.
func Timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// DecisionsFile returns the file of [Decisions.Write].
func DecisionsFile(dir string) string { return filepath.Join(dir, "decisions.json") }

// ReadDecisions reads the decisions stored in the host state dir.
func ReadDecisions(dir string) (Decisions, error) {
	d := Decisions{Version: version}
	err := readFile(DecisionsFile(dir), &d, &d.Version)
	return d, err
}

// Write replaces the decisions stored in the host state dir.
func (d Decisions) Write(dir string) error { return writeFile(DecisionsFile(dir), d) }

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

// ReviewOf returns the verdict on an inner commit, or nil if there is none.
func (d Decisions) ReviewOf(inner gitops.OID) *Reviewed {
	if i := slices.IndexFunc(d.Reviewed, func(r Reviewed) bool { return r.Inner == inner }); i >= 0 {
		return &d.Reviewed[i]
	}
	return nil
}

// reviewsKept bounds the number of verdicts in the file. Notes contain all of them.
const reviewsKept = 5000

// Review adds a verdict, in the place of an older one on the same inner commit. A commit that is rejected or undone is left out
// from now on, and one with another verdict is not. parent is the first parent of the inner commit, or empty.
func (d Decisions) Review(r Reviewed, parent gitops.OID) Decisions {
	if old := d.ReviewOf(r.Inner); old != nil {
		for _, v := range old.Owed() {
			r.Earlier = append(slices.Clip(r.Earlier), *v)
		}
	}
	d.Reviewed = slices.DeleteFunc(slices.Clone(d.Reviewed), func(x Reviewed) bool { return x.Inner == r.Inner })
	d.Reviewed = append(d.Reviewed, r)
	d.Reviewed = d.Reviewed[max(0, len(d.Reviewed)-reviewsKept):]
	if r.Word == review.Seen {
		return d
	}
	d.Dropped = slices.DeleteFunc(slices.Clone(d.Dropped), func(x Dropped) bool { return x.Commit == r.Inner })
	if r.Word.LeavesOut() {
		d.Dropped = append(d.Dropped, Dropped{Commit: r.Inner, Parent: parent, Subject: r.Subject, At: Timestamp(r.At)})
	}
	return d
}

// Replace replaces the entry of an inner commit by r, which has the same verdict and more files that the user has looked at.
func (d Decisions) Replace(r Reviewed) Decisions {
	d.Reviewed = slices.Clone(d.Reviewed)
	if i := slices.IndexFunc(d.Reviewed, func(x Reviewed) bool { return x.Inner == r.Inner }); i >= 0 {
		d.Reviewed[i] = r
		return d
	}
	return d.Review(r, "")
}

// Verdicts returns the newest verdicts. asks reports that only approved commits may land.
func (d Decisions) Verdicts(asks bool) review.Verdicts {
	v := review.Verdicts{Asks: asks, Words: map[gitops.OID]review.Word{}}
	for _, r := range d.Reviewed {
		v.Words[r.Inner] = r.Word
	}
	return v
}

// Open returns the decisions without the verdicts on landed commits that nobody needs any more: the notes have these verdicts, and they have
// no reason, which the agent would get.
func (d Decisions) Open(landed func(gitops.OID) bool) Decisions {
	d.Reviewed = slices.DeleteFunc(slices.Clone(d.Reviewed), func(r Reviewed) bool { return r.Reason == "" && len(r.Owed()) == 0 && landed(r.Inner) })
	return d
}

// Forget removes the verdict on an inner commit, and the decision to leave it out.
func (d Decisions) Forget(inner gitops.OID) Decisions {
	d.Reviewed = slices.DeleteFunc(slices.Clone(d.Reviewed), func(x Reviewed) bool { return x.Inner == inner })
	d.Dropped = slices.DeleteFunc(slices.Clone(d.Dropped), func(x Dropped) bool { return x.Commit == inner })
	return d
}
