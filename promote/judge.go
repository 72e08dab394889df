package promote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/provenance"
	"github.com/git-airlock/git-airlock/promote/review"
)

// judged holds the waiting commits, the last of them that may land, and the notes to write.
type judged struct {
	remarks
	pending []ledger.Pair     // oldest first
	fresh   gitops.OID        // the newest of pending that is new in this cycle; empty if there is none
	outside []gitops.OID      // outer commits below the built ones
	mayLand gitops.OID        // the newest of pending that no rule holds; empty if there is none
	notes   []quarantine.Note // new notes, and removals of the notes of commits that are not pending any more
	later   bool              // the next cycle checks some commits
	results ledger.GateResults
	windows *ledger.Windows // nil if the gate did not need them
}

// judge runs the policy gate on every pending commit that has no result under the current rules. The commits before
// the first held one may land. An invalid commit and those after it are not made pending.
func (e *Engine) judge(ctx context.Context, f facts, p planned, b built, w *lazyBridge) (judged, error) {
	results, err := f.rules.results()
	if err != nil {
		return judged{}, err
	}
	results = results.Clone()
	var unknown []ledger.Pair
	again, err := results.IgnoredAnew(ctx, f.rules.ignores, b.Pending)
	if err != nil {
		return judged{}, err
	}
	for _, t := range b.Pending {
		if again[t.Outer] || results.Unchecked(b.Pending, t.Outer) {
			unknown = append(unknown, t)
		}
	}
	var windows *ledger.Windows
	if e.Egress != nil && len(unknown) > 0 && f.rules.settings.Action(policy.Fetched) != policy.Off {
		if windows, err = ledger.ReadWindows(ctx, e.Dir(), f.ledger, b.Pending, e.Egress, true); err != nil {
			return judged{}, err
		}
		f.rules.fetched = windows.Fetched(unknown)
	}
	passed, err := e.check(ctx, f, w, unknown)
	for _, v := range passed {
		if paths, found := v.IgnoredPaths(); found {
			v.Ignores = f.rules.ignores.StateAbove(paths)
		}
		results.Add(v)
	}
	var invalid *inner.Invalid
	if err != nil && !errors.As(err, &invalid) {
		return judged{}, err
	}
	j := judged{pending: b.Pending, outside: b.Outside, results: results, windows: windows}
	if invalid != nil {
		j.remarks = refusing(hold.InnerInvalid(invalid))
		j.pending = landableBefore(p, b.Pending, unknown[len(passed)].Inner)
	}
	if j.notes, err = e.notes(ctx, f, p, b, j, unknown); err != nil {
		return j, err
	}
	for _, n := range b.Fresh {
		if !n.Same && slices.ContainsFunc(j.pending, func(t ledger.Pair) bool { return t.Outer == n.Outer }) {
			j.fresh = n.Outer
		}
	}
	return e.findLandable(ctx, f, p, j), nil
}

// landableBefore returns the pending pairs before an inner commit that can land without it: those of the chain, and those before the chain.
func landableBefore(p planned, pending []ledger.Pair, inner gitops.OID) []ledger.Pair {
	end := slices.IndexFunc(pending, func(t ledger.Pair) bool { return t.Inner == inner })
	pending = pending[:end]
	done := gitops.SetOf(ledger.Inners(pending)...)
	reached := gitops.SetOf(quarantine.Commits(p.Reach(p.Whole(func(id gitops.OID) bool { return done[id] })))...)
	chain := max(0, slices.IndexFunc(pending, func(t ledger.Pair) bool { return reached[t.Inner] }))
	return append(pending[:chain:chain], slices.DeleteFunc(slices.Clone(pending[chain:]), func(t ledger.Pair) bool { return !reached[t.Inner] })...)
}

// findLandable finds the commits that may land: those before the first held commit.
func (e *Engine) findLandable(ctx context.Context, f facts, p planned, j judged) judged {
	if len(j.pending) == 0 {
		return j
	}
	if f.rules.broken != nil {
		j.holds = append(j.holds, hold.TeamUnreadable(f.rules.broken))
		return j
	}
	lands, verdicts, asked := p.Ends(), f.verdicts(), false
	for _, t := range j.pending {
		v := j.results.Of(t.Outer)
		if v != nil && v.Late {
			j.later = true
			return j
		}
		if v.Holds() {
			j.holds = append(j.holds, hold.Policy(*v, len(j.held())-1))
			if there := e.inTheWay(*v); len(there) > 0 {
				next := land.Landing{Old: f.refs.tip, New: t.Outer, Begun: e.Record.Base, Dir: e.Dir(), Config: f.config}
				j.holds = append(j.holds, e.Collision(ctx, hold.InTheWay(ctx, e.Repo, next, there)))
			}
			return j
		}
		if h := e.uncreated.Hold(t); h != nil {
			j.holds = append(j.holds, *h)
			return j
		}
		asked = asked || verdicts.Holds(t.Inner)
		if lands[t.Inner] && !asked && !p.Postponed(t.Inner) {
			j.mayLand = t.Outer
		}
	}
	return j
}

// lands returns the pending commits that may land, in their order.
func (j judged) lands() []ledger.Pair {
	return j.pending[:1+slices.IndexFunc(j.pending, func(t ledger.Pair) bool { return t.Outer == j.mayLand })]
}

// held returns the inner commits that a rule holds.
func (j judged) held() []gitops.OID {
	passes := func(t ledger.Pair) bool { return !j.results.Of(t.Outer).Holds() }
	return ledger.Inners(slices.DeleteFunc(slices.Clone(j.pending), passes))
}

// inTheWay returns the paths in the findings of ignored-path at which the user already has a file. The commit will collide there once the user
// accepts the finding.
func (e *Engine) inTheWay(v ledger.GateResult) []string {
	var there []string
	for _, f := range v.Findings {
		if f.Rule != policy.IgnoredPath {
			continue
		}
		for _, p := range f.Paths {
			if _, err := os.Lstat(filepath.Join(e.Repo.Top, filepath.FromSlash(p))); err == nil && gitops.Text(p).Plain() {
				there = append(there, p)
			}
		}
	}
	return there
}

// notes returns the changes of notes: new texts for new commits and for waiting commits whose result or reviewer changed, and removals for
// commits that are not pending any more.
func (e *Engine) notes(ctx context.Context, f facts, p planned, b built, j judged, checked []ledger.Pair) ([]quarantine.Note, error) {
	var notes []quarantine.Note
	waits, fresh, without := gitops.SetOf(ledger.Outers(j.pending)...), map[gitops.OID]bool{}, p.Missing(j.pending)
	for _, n := range b.Fresh {
		if fresh[n.Outer] = true; waits[n.Outer] {
			notes = append(notes, provenance.Note(e.Record, n.Pair, n.Author, j.results.Of(n.Outer), f.rules.decisions.ReviewOf(n.Inner), without[n.Inner], f.now))
		}
	}
	gone := slices.Concat(b.Gone, f.replaced)
	for _, t := range b.Pending {
		if !waits[t.Outer] && !fresh[t.Outer] { // was pending, and is invalid under the current rules
			gone = append(gone, t)
		}
	}
	again := map[gitops.OID]bool{}
	for _, t := range checked {
		again[t.Outer] = j.results.Of(t.Outer).Word() != j.results.Before(t.Outer).Word()
	}
	for _, t := range j.pending {
		reviewed := f.rules.decisions.ReviewOf(t.Inner)
		if fresh[t.Outer] || !again[t.Outer] && (reviewed == nil || reviewed.Word == review.Seen || reviewed.Noted == t.Outer) {
			continue
		}
		inner, err := f.inside.Commit(ctx, t.Inner)
		if err != nil {
			return nil, err
		}
		author, _ := gitops.SplitIdent(inner.Author)
		notes = append(notes, provenance.Note(e.Record, t, author, j.results.Of(t.Outer), reviewed, without[t.Inner], f.now))
	}
	removals, err := provenance.Removals(ctx, e.Repo, gone)
	return append(notes, removals...), err
}
