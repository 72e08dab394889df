package promote

import (
	"context"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// built holds the commits that are ready to land, and the reasons why some were not built on the branch.
type built struct {
	build.Built
	remarks
	without []gitops.OID // commits that were set aside because they lack others
}

func (b built) entered(o ledger.Outcome) ledger.Outcome {
	o.Lacking = b.without
	o.Onto, o.Apart, o.Aside, o.Unbuilt = b.Onto, b.Apart, b.Aside, b.Unbuilt
	return b.added(o)
}

// lacking returns the inner commit at which the building stopped, because it needs commits that were left out, or conflicts with the branch.
func (b built) lacking(p planned) []gitops.OID {
	var ids []gitops.OID
	for _, c := range b.Stopped {
		if slices.Contains(p.Chain, c.Commit) {
			ids = append(ids, c.Commit)
		}
	}
	return ids
}

// build builds the commits of a plan.
func (e *Engine) build(ctx context.Context, f facts, p planned, w *lazyBridge) (built, error) {
	made, err := build.Commits(ctx, build.Request{
		Plan: p.Plan, Format: e.Record.Format, Trees: p.trees, User: f.settings.User, Sign: f.settings.Sign,
		ByPatch: f.settings.Engine == PatchEngine, Onto: f.refs.onto(), Before: build.Place{Onto: f.before.Onto, Apart: f.before.Apart, Aside: f.before.Aside, Unbuilt: f.before.Unbuilt},
		Again: f.options.Engine != "", Repo: e.Repo, Bridge: w.bridge, Inside: f.inside, Across: w.across,
		Progress: func(done, all int) { e.progress("building commits", done, all) },
		Fetch:    func(ctx context.Context) bool { return e.fetchPromised(ctx, f.refs.onto()) },
	})
	if err != nil {
		return built{}, err
	}
	b := built{Built: made}
	if made.Same {
		b.holds = f.before.Of(ledger.Conflict)
	}
	if made.Late {
		b.retry = retrySoon
	}
	if len(made.Stopped) == 0 {
		return b, nil
	}
	left, err := f.reader().LeftOut(ctx, f.ledger, p.Tip)
	if err != nil {
		return built{}, err
	}
	refused := func(id gitops.OID) []ledger.Reviewed { return p.RefusedBefore(id, left) }
	for _, c := range made.Stopped {
		b.holds = append(b.holds, hold.Conflict(c, e.Record.BranchName(), len(f.ledger.Landed) > 0, refused))
	}
	return b, nil
}

// promisedPause is the time between two attempts to fetch promised objects from a remote.
const promisedPause = time.Minute

// fetchPromised fetches the objects of the user's commits since the base that a partial clone lacks. It reports
// whether more objects may be readable now. If fetching fails, the step that needs the objects reports its own error.
func (e *Engine) fetchPromised(ctx context.Context, onto gitops.OID) bool {
	if time.Since(e.fetched) < promisedPause {
		return false
	}
	e.fetched = time.Now()
	fetched, err := e.Repo.FetchPromised(ctx, onto, e.Record.Base)
	return fetched && err == nil
}

// lazyBridge holds the bridge between quarantine and repository in which outer objects are made. The bridge is opened when
// it is first needed. Objects that are made in it and not delivered are discarded with it.
type lazyBridge struct {
	open   func() (*quarantine.Bridge, error)
	inside *quarantine.Inspector
	bridge *quarantine.Bridge    // nil until it is opened
	across *quarantine.Inspector // of the bridge
}

func newLazyBridge(e *Engine, f facts) *lazyBridge {
	return &lazyBridge{inside: f.inside, open: func() (*quarantine.Bridge, error) {
		b, err := f.quarantine.Bridge(e.Repo, f.config, e.bridgeDir())
		if err == nil {
			b.Memory, b.Time = f.settings.Limits.Memory, e.slow.Budget(f.settings.Limits.Time, f.options.Unchecked)
		}
		return b, err
	}}
}

// ready opens the bridge, unless it is open.
func (b *lazyBridge) ready(ctx context.Context) (err error) {
	if b.bridge != nil {
		return nil
	}
	if b.bridge, err = b.open(); err == nil {
		b.across = b.bridge.Inspect(ctx, b.inside)
	}
	return err
}

func (b *lazyBridge) close() {
	if b.bridge != nil {
		_ = b.across.Close()
		_ = b.bridge.Close()
	}
}
