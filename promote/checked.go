package promote

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Checker runs airlock.check in a prison.
type Checker interface {
	// System returns the name of the system in which checks run. A result counts for this system only.
	System(ctx context.Context) (string, error)
	// Run checks the tree of an outer commit, unless the result is known, and stores the result. It takes as long as the user's
	// command. An error means that the command has not run to its end.
	Run(ctx context.Context, wanted checks.Wanted) (checks.Result, error)
}

// checked is the result of airlock.check for a landing.
type checked struct {
	remarks
	to      gitops.OID          // the newest commit at which the landing may end; empty if there is none
	refused map[gitops.OID]bool // outer commits at which it may not end
	next    *checks.Wanted      // the commit to check next; nil if nothing is left to check
}

// checked finds the newest commit, not newer than to, at which a landing may end: its tree needs no check, or has passed.
func (e *Engine) checked(ctx context.Context, f facts, p planned, j judged, w *lazyBridge, to gitops.OID) (c checked, err error) {
	if c.to = to; to == "" || f.rules.check.Command == "" {
		return c, nil
	}
	ends, needs := f.endsUpTo(p, j, to)
	if !slices.Contains(needs, true) {
		return c, nil
	}
	states, failure := make([]checks.State, len(ends)), f.options.CheckFailure
	system := ""
	if e.Checker != nil {
		if system, err = e.Checker.System(ctx); err != nil {
			failure = err
		}
	}
	results, err := e.results(ctx, f, w, ends, needs, system)
	if err != nil {
		return c, err
	}
	for i, r := range results {
		switch {
		case !needs[i]:
			states[i] = checks.Free
		case r == nil:
		case r.Passed():
			states[i] = checks.Passed
		default:
			states[i] = checks.Failed
		}
	}
	lands, next := checks.Choose(states)
	c.to, c.refused = "", map[gitops.OID]bool{}
	for i, s := range states {
		c.refused[ends[i].Outer] = s == checks.Unknown || s == checks.Failed
	}
	if lands >= 0 {
		c.to = ends[lands].Outer
	}
	if next >= 0 {
		c.next = &checks.Wanted{Check: f.rules.check, Commit: ends[next].Outer}
		c.holds = []ledger.Hold{hold.Unchecked(ends[next].Outer, j.results.Of(ends[next].Outer).Subject, e.Checker != nil && !f.options.Unchecked, failure)}
	} else if failed := checks.FirstFailed(states, lands); failed >= 0 {
		c.holds = []ledger.Hold{hold.CheckFailed(ends[failed].Outer, j.results.Of(ends[failed].Outer).Subject, results[failed].Exit)}
	}
	return c, nil
}

// endsUpTo returns the pending commits, not newer than to, at which a landing may end, oldest first. needs reports for each of them whether
// its tree needs a check. With airlock.check.gate=hold all trees need one, and otherwise the trees that may lack a commit which was left out.
func (f facts) endsUpTo(p planned, j judged, to gitops.OID) (ends []ledger.Pair, needs []bool) {
	lands, missing := p.Ends(), p.Missing(j.pending)
	left, partial := len(f.ledger.LeftOut()) > 0, false
	for _, t := range j.pending {
		partial = partial || len(missing[t.Inner])+len(t.Without) > 0 || left && t.Merged
		if t.Outer == to || lands[t.Inner] && !p.Postponed(t.Inner) {
			ends, needs = append(ends, t), append(needs, partial || f.rules.check.Hold)
		}
		if t.Outer == to {
			break
		}
	}
	return ends, needs
}

// results returns for each commit the result that was found here for its tree in a system. The result is nil if the tree was not checked in
// that system, or needs no check.
func (e *Engine) results(ctx context.Context, f facts, w *lazyBridge, ends []ledger.Pair, needs []bool, system string) ([]*checks.Result, error) {
	results := make([]*checks.Result, len(ends))
	here, err := checks.Here(e.Repo)
	if err != nil || len(here) == 0 {
		return results, err
	}
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	for i, t := range ends {
		if !needs[i] {
			continue
		}
		commit, err := w.across.Commit(ctx, t.Outer)
		if err != nil {
			return nil, err
		}
		results[i] = checks.In(here[commit.Tree], f.rules.check, system)
	}
	return results, nil
}
