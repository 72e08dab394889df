package promote

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// built are the outer-ready commits, and why not all of them were built on the branch.
type built struct {
	build.Built
	remarks
}

func (b built) entered(o ledger.Outcome) ledger.Outcome {
	o.Onto, o.Apart = b.Onto, b.Apart
	return b.added(o)
}

// build builds what the plan lists.
func (e *Engine) build(ctx context.Context, f facts, p planned, w *bench) (built, error) {
	if len(p.Chain) > 0 {
		if err := w.ready(ctx); err != nil {
			return built{}, err
		}
	}
	made, err := build.Commits(ctx, build.Request{
		Plan: p.Plan, Format: e.Record.Format, Part: e.Record.Part, User: f.settings.User, Sign: f.settings.Sign,
		ByPatch: f.settings.Engine == PatchEngine, Onto: f.refs.onto(), Before: build.Place{Onto: f.before.Onto, Apart: f.before.Apart},
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
	for _, c := range made.Stopped {
		b.holds = append(b.holds, e.conflict(ctx, f.refs, c))
	}
	if made.Late {
		b.retry = unsettledPoll
	}
	return b, nil
}

// promisedPause is how long a remote is left alone that was asked for what it promised.
const promisedPause = time.Minute

// fetchPromised fetches what the user's commits since the base have only promised, in a partial clone. It reports
// whether there may be more to read than before; why there is not is part of what fails for want of it.
func (e *Engine) fetchPromised(ctx context.Context, onto gitops.OID) bool {
	if time.Since(e.fetched) < promisedPause {
		return false
	}
	e.fetched = time.Now()
	fetched, err := e.Repo.FetchPromised(ctx, onto, e.Record.Base)
	return fetched && err == nil
}

// bench is where outer objects are made: a bridge between quarantine and repository, opened when it is first needed.
// What is made on it and not delivered is thrown away with it.
type bench struct {
	open   func() (*gitops.Bridge, error)
	inside *gitops.Inspector
	bridge *gitops.Bridge    // nil until it is opened
	across *gitops.Inspector // of the bridge
}

func newBench(e *Engine, f facts) *bench {
	return &bench{inside: f.inside, open: func() (*gitops.Bridge, error) { return f.quarantine.Bridge(e.Repo, e.bridgeDir()) }}
}

// ready opens the bridge, unless it is open.
func (b *bench) ready(ctx context.Context) (err error) {
	if b.bridge != nil {
		return nil
	}
	if b.bridge, err = b.open(); err == nil {
		b.across = b.bridge.Inspect(ctx, b.inside)
	}
	return err
}

func (b *bench) close() {
	if b.bridge != nil {
		_ = b.across.Close()
		_ = b.bridge.Close()
	}
}
