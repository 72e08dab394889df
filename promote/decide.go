package promote

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Decided is a commit about which the user has decided.
type Decided struct {
	Commit  gitops.OID // the outer commit, or the inner one if it has not been built
	Subject string     // escaped
}

// lockedFacts reads the facts and keeps other processes from making a cycle until unlock is called.
func (e *Engine) lockedFacts(ctx context.Context) (f facts, unlock func(), err error) {
	release, err := e.Store.LockFile(ctx, e.Record.ID, CycleLock)
	if err != nil {
		return f, nil, err
	}
	defer func() {
		if err != nil {
			f.close()
			release()
		}
	}()
	before, err := ledger.ReadOutcome(e.Dir())
	if err != nil {
		return f, nil, err
	}
	if f, err = e.read(ctx); err != nil {
		return f, nil, err
	}
	f.before, f.now = before, time.Now()
	f.rules, err = e.readRules(ctx, f)
	return f, func() { f.close(); release() }, err
}

// Accept lets held commits pass the accepted rules, see [decision.Acceptances], and returns these commits. The names are those of the
// commits, or there are none.
func (e *Engine) Accept(ctx context.Context, wanted []policy.Acceptance, names ...string) (passed []Decided, err error) {
	f, unlock, err := e.lockedFacts(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	results, err := f.rules.results()
	if err != nil {
		return nil, err
	}
	a := decision.Acceptances{Rules: wanted, Names: names, At: f.now}
	decisions, found, err := a.Add(ctx, e.Repo, f.ledger, &results, f.rules.decisions)
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		passed = append(passed, Decided{v.Commit, v.Subject})
	}
	return passed, e.keep(decisions)
}

// keep writes the user's decisions, unless this is a dry run.
func (e *Engine) keep(d ledger.Decisions) error {
	if e.Repo.Dry {
		return nil
	}
	return d.Write(e.Dir())
}

// Standing is an airlock between two cycles. No cycle runs until Close or Keep is called.
type Standing struct {
	Plan      *history.Plan
	Links     []quarantine.Link // commits that the agent's history has and that have not landed, parents first
	Ledger    *ledger.Ledger
	Decisions ledger.Decisions
	Verdicts  review.Verdicts
	Settings  Settings
	Inside    decision.Inside
	Tip       gitops.OID // of the branch, or the last landed commit if the branch is gone
	Now       time.Time
	Results   func() (ledger.GateResults, error) // of the last cycle under the current rules; callers must not change them

	Close func() // must be called, unless Keep is
	Keep  func() // like Close, but leaves the lock and the facts to [Engine.Cycle] or [Engine.Close], one of which must follow at once
	// Trees returns the trees of the plan's commits. They can be used until Close is called.
	Trees func(context.Context) (*build.Trees, error)
	// Bridge returns the bridge for new outer objects, and its inspector. They can be used until Close is called.
	Bridge func(context.Context) (*quarantine.Bridge, *quarantine.Inspector, error)
}

// Standing reads the state of the airlock, and keeps other processes from making a cycle until Close or Keep is called.
func (e *Engine) Standing(ctx context.Context) (*Standing, error) {
	f, unlock, err := e.lockedFacts(ctx)
	if err != nil {
		return nil, err
	}
	var p planned
	var links []quarantine.Link
	f.before = f.before.OnMain() // as the next cycle does
	tip, err := e.seen(ctx, f)
	if err == nil {
		p, err = e.plan(ctx, f, f.takenBefore(tip), map[gitops.OID]bool{})
	}
	if err == nil {
		links, _, err = e.unlanded(ctx, f, tip)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	bridge := newLazyBridge(e, f)
	s := &Standing{Plan: p.Plan, Links: p.Beside(links), Ledger: f.ledger, Decisions: f.rules.decisions, Verdicts: f.verdicts(), Settings: f.settings, Inside: f.reader(),
		Tip: f.refs.onto(), Now: f.now, Results: f.rules.results,
		Close: func() { bridge.close(); _ = e.release(); unlock() }, // the next cycle tries again to release what is left
		Trees: func(ctx context.Context) (*build.Trees, error) { return e.treesOf(ctx, p, bridge) },
		Bridge: func(ctx context.Context) (*quarantine.Bridge, *quarantine.Inspector, error) {
			err := bridge.ready(ctx)
			return bridge.bridge, bridge.across, err
		}}
	s.Keep = func() {
		bridge.close()
		known, _ := s.Results() // the cycle reports the error
		f.rules.decisions, f.patches = s.Decisions, e.patchIDs(ctx, s.Decisions, known)
		e.kept = &kept{unlock, &f}
	}
	return s, nil
}
