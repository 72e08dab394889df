package promote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// judged is what waits, what of it may land, and what its notes say.
type judged struct {
	remarks
	pending  []ledger.Pair // oldest first
	fresh    gitops.OID    // the newest of them that was built in this cycle; empty if none was
	outside  []gitops.OID  // outer commits that the built ones rest on
	mayLand  gitops.OID    // the newest of pending that no rule keeps from landing; empty if there is none
	notes    []gitops.Note // new ones, and removals of those of commits that are not pending any more
	later    bool          // some commits are left for the next cycle to check
	verdicts ledger.Verdicts
}

// judge has the policy gate check every pending commit that has no verdict under the present rules. What comes before
// the first held commit may land. What comes from an invalid commit on is not made pending at all.
func (e *Engine) judge(ctx context.Context, f facts, p planned, b built, w *bench) (judged, error) {
	verdicts, err := ledger.ReadVerdicts(e.Dir(), f.rules.fingerprint, f.ledger)
	if err != nil {
		return judged{}, err
	}
	var unknown []ledger.Pair
	for _, t := range b.Pending {
		if verdicts.Unchecked(b.Pending, t.Outer) {
			unknown = append(unknown, t)
		}
	}
	passed, err := e.check(ctx, f, w, unknown)
	for _, v := range passed {
		verdicts.Add(v)
	}
	var invalid *gitops.Invalid
	if err != nil && !errors.As(err, &invalid) {
		return judged{}, err
	}
	j := judged{pending: b.Pending, outside: b.Outside, verdicts: verdicts}
	if invalid != nil {
		j.remarks = innerInvalid(invalid)
		j.pending = before(p, b.Pending, unknown[len(passed)].Inner)
	}
	if j.notes, err = e.notes(ctx, f, b, j, unknown); err != nil {
		return j, err
	}
	for _, n := range b.Fresh {
		if slices.ContainsFunc(j.pending, func(t ledger.Pair) bool { return t.Outer == n.Outer }) {
			j.fresh = n.Outer
		}
	}
	return e.sentence(ctx, f, p, j), nil
}

// before returns the pairs of the commits that can land before an inner commit.
func before(p planned, pending []ledger.Pair, inner gitops.OID) []ledger.Pair {
	end := slices.IndexFunc(pending, func(t ledger.Pair) bool { return t.Inner == inner })
	done := map[gitops.OID]bool{}
	for _, t := range pending[:end] {
		done[t.Inner] = true
	}
	reached := map[gitops.OID]bool{}
	for _, l := range p.Reach(p.Whole(func(id gitops.OID) bool { return done[id] })) {
		reached[l.Commit] = true
	}
	return slices.DeleteFunc(slices.Clone(pending[:end]), func(t ledger.Pair) bool { return !reached[t.Inner] })
}

// sentence finds what may land: what comes before the first held commit.
func (e *Engine) sentence(ctx context.Context, f facts, p planned, j judged) judged {
	if len(j.pending) == 0 {
		return j
	}
	if f.rules.broken != nil {
		j.holds = append(j.holds, teamUnreadable(f.rules.broken))
		return j
	}
	lands := map[gitops.OID]bool{}
	for _, id := range p.Chain {
		lands[id] = true
	}
	for i, t := range j.pending {
		v := j.verdicts.Of(t.Outer)
		if v != nil && v.Late {
			j.later = true
			return j
		}
		if v.Holds() {
			later := 0
			for _, t := range j.pending[i+1:] {
				if j.verdicts.Of(t.Outer).Holds() {
					later++
				}
			}
			j.holds = append(j.holds, policyHold(*v, later))
			if there := e.inTheWay(*v); len(there) > 0 {
				j.holds = append(j.holds, e.collision(ctx, there))
			}
			return j
		}
		if lands[t.Inner] {
			j.mayLand = t.Outer
		}
	}
	return j
}

// inTheWay returns the paths of new files at which the user has one already: such a commit will collide once its rule
// is accepted.
func (e *Engine) inTheWay(v ledger.Verdict) []string {
	var there []string
	for _, f := range v.Findings {
		if f.Rule != policy.IgnoredPath {
			continue
		}
		for _, p := range f.Paths {
			if _, err := os.Lstat(filepath.Join(e.Repo.Top, filepath.FromSlash(p))); err == nil && gitops.Escape(p) == p {
				there = append(there, p)
			}
		}
	}
	return there
}

// notes makes the notes that change: removals for commits that are not pending any more, those of new commits, and
// those of commits that wait under rules which have changed.
func (e *Engine) notes(ctx context.Context, f facts, b built, j judged, checked []ledger.Pair) ([]gitops.Note, error) {
	var notes []gitops.Note
	for _, gone := range b.Gone {
		notes = append(notes, gitops.Note{Commit: gone.Outer})
	}
	waits, fresh := map[gitops.OID]bool{}, map[gitops.OID]bool{}
	for _, t := range j.pending {
		waits[t.Outer] = true
	}
	for _, n := range b.Fresh {
		if fresh[n.Outer] = true; waits[n.Outer] {
			notes = append(notes, e.note(n.Pair, n.Author, j.verdicts.Of(n.Outer), f.now))
		}
	}
	for _, t := range b.Pending {
		if !waits[t.Outer] && !fresh[t.Outer] { // pending before, and invalid under the rules of now
			notes = append(notes, gitops.Note{Commit: t.Outer})
		}
	}
	for _, t := range checked {
		if fresh[t.Outer] || !waits[t.Outer] || j.verdicts.Of(t.Outer).Word() == j.verdicts.Before(t.Outer).Word() {
			continue
		}
		inner, err := f.inside.Commit(ctx, t.Inner)
		if err != nil {
			return nil, err
		}
		author, _ := gitops.SplitIdent(inner.Author)
		notes = append(notes, e.note(t, author, j.verdicts.Of(t.Outer), f.now))
	}
	return notes, nil
}
