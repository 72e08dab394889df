package promote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// facts are the input of a cycle: the settings, and the state outside and inside.
type facts struct {
	now     time.Time
	options Options
	before  ledger.Outcome
	configured
	refs    refs
	ledger  *ledger.Ledger
	adopted int // pending commits that the user has landed by hand
	rules   ruleset
	main    gitops.OID                            // tip of the inner main; empty if there is none
	mainErr error                                 // why main could not be read
	patches func() (map[gitops.OID]string, error) // see [Engine.patchIDs]

	quarantine *quarantine.Store
	inside     *quarantine.Inspector  // of the quarantine
	reached    map[gitops.OID]reached // by inner commits; see [Engine.unlanded]
}

// configured are the user's settings at the beginning of the cycle.
type configured struct {
	origins  []gitops.Setting // each with the file that sets it
	config   gitops.Config    // origins and the settings given at the start
	settings Settings
}

// refs are the values of an airlock's refs.
type refs struct {
	tip      gitops.OID            // of the outer branch; empty if it is deleted
	promoted gitops.OID            // the last landed commit, or the base
	pending  gitops.OID            // empty if nothing is pending
	ops      gitops.OID            // the newest operation; empty if there is none
	team     gitops.OID            // the ref of the team's policy; empty if there is none
	named    map[string]gitops.OID // all of them as they were read, and those of notesRefs as they are
}

// onto returns the commit to build on: the branch's tip, or the last landed commit if the branch is gone.
func (r refs) onto() gitops.OID { return cmp.Or(r.tip, r.promoted) }

func (f facts) close() {
	if f.inside != nil {
		_ = f.inside.Close()
	}
	if f.rules.facts.Ignores != nil {
		_ = f.rules.facts.Ignores.Close()
	}
}

// survey reads the facts. Those that a command has read under the same lock are still right, unless the user's git has moved a ref.
func (e *Engine) survey(ctx context.Context, options Options, before ledger.Outcome, now time.Time, known *facts) (f facts, err error) {
	var all sync.WaitGroup
	var main gitops.OID
	var mainErr error
	all.Go(func() { main, mainErr = e.wanted(ctx, options) })
	if at, err := e.refs(ctx); known == nil || err != nil || !maps.Equal(at.named, known.refs.named) {
		known = nil
	}
	if known != nil {
		f = *known
	} else {
		f, err = e.read(ctx)
	}
	all.Wait()
	f.now, f.options, f.before, f.main, f.mainErr = now, options, before, main, mainErr
	f.settings.Engine = cmp.Or(options.Engine, f.settings.Engine)
	if err == nil {
		f, err = e.adopt(ctx, f)
	}
	if err == nil && known == nil {
		f.rules, err = e.readRules(ctx, f)
		f.patches = e.patchIDs(ctx, f.rules.decisions, ledger.GateResults{})
	}
	return f, err
}

// read reads settings, refs and ledger at the same time.
func (e *Engine) read(ctx context.Context) (f facts, err error) {
	var all sync.WaitGroup
	var set configured
	var setErr error
	all.Go(func() { set, setErr = e.configure(ctx) })
	f, err = e.readLedger(ctx)
	all.Wait()
	f.configured = set
	return f, errors.Join(setErr, err)
}

// configure reads the user's current settings.
func (e *Engine) configure(ctx context.Context) (c configured, err error) {
	if c.origins = e.Settings; c.origins == nil {
		if c.origins, err = e.Repo.Settings(ctx); err != nil {
			return c, err
		}
	}
	c.config = gitops.ConfigOf(c.origins).With(e.Record.Settings)
	// This limit is obeyed even if another setting cannot be read.
	if size, err := readMaxWorkspace(c.config); err == nil && e.Guard != nil {
		e.Guard.Allow(size)
	}
	c.settings, err = ReadSettings(c.config)
	return c, err
}

// refs reads the refs.
func (e *Engine) refs(ctx context.Context) (refs, error) {
	named, err := e.Repo.Refs(ctx, append([]string{e.Record.Branch, e.Record.Ref("promoted"), e.Record.Ref("pending"), e.Record.Ref(operation.Ref), policy.TeamRef}, notesRefs...)...)
	return refs{tip: named[e.Record.Branch], promoted: named[e.Record.Ref("promoted")], pending: named[e.Record.Ref("pending")],
		named: named, ops: named[e.Record.Ref(operation.Ref)], team: named[policy.TeamRef]}, err
}

// readLedger reads the refs and the ledger.
func (e *Engine) readLedger(ctx context.Context) (f facts, err error) {
	if f.refs, err = e.refs(ctx); err != nil {
		return f, err
	}
	if f.refs.promoted == "" {
		last, err := ledger.LastLanded(e.Dir(), e.Record.Base)
		if err == nil {
			err = fmt.Errorf("the airlock's ref promoted is missing; to restore it: git update-ref %s %s", e.Record.Ref("promoted"), last)
		}
		return f, err
	}
	f.quarantine = e.quarantine()
	f.inside, f.reached = f.quarantine.Inspect(ctx), map[gitops.OID]reached{}
	base := ledger.Pair{Inner: e.Record.Root, Outer: e.Record.Base}
	f.ledger, err = e.ledgers.Read(e.Dir(), base, f.refs.promoted, f.refs.pending)
	return f, err
}

// wanted returns the inner commit to promote, or empty if the workspace has none.
func (e *Engine) wanted(ctx context.Context, options Options) (gitops.OID, error) {
	if options.Known || e.Store.WorkspaceGone(e.Record) {
		return "", nil
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return "", err
	}
	if options.From != "" {
		return exporter.Resolve(ctx, options.From)
	}
	return exporter.Main(ctx)
}

// ownMoves begins the messages in the reflog of the moves that are not the user's.
const ownMoves = "airlock: "

// adopt marks pending commits as landed that the user merged or fast-forwarded to by hand. These are the commits that
// the branch reaches, or has reached before the user reset it or amended a commit. All of that may have happened
// since the last cycle. The adopted commits need not be consecutive: the user can have taken one side of a pending
// merge without the other. An earlier cycle has seen all that was done before our own last move of the branch.
func (e *Engine) adopt(ctx context.Context, f facts) (facts, error) {
	if len(f.ledger.Tail) == 0 || f.refs.tip == "" || e.Repo.LastMoved(e.Record.Branch, f.refs.tip, ownMoves) {
		return f, nil
	}
	past, err := e.Repo.PastBesides(ctx, e.Record.Branch, ownMoves)
	if err != nil {
		return f, err
	}
	left, err := e.Repo.Unreached(ctx, []gitops.OID{f.refs.pending}, append(past, f.refs.tip))
	if err != nil {
		return f, err
	}
	var taken []ledger.Pair
	for _, t := range f.ledger.Tail {
		if !slices.Contains(left, t.Outer) {
			taken = append(taken, t)
		}
	}
	if len(taken) == 0 {
		return f, nil
	}
	onLine, err := e.newestLast(ctx, f.refs, taken)
	if err != nil {
		return f, err
	}
	f.ledger.Adopt(taken, onLine)
	clear(f.reached)
	if err := f.ledger.Save(); err != nil { // the refs decide how much of the ledger counts
		return f, err
	}
	f.adopted = len(taken)
	f.refs, err = e.moveOn(ctx, f)
	return f, err
}

// newestLast moves the newest commit of the line that lands to the end, because landing continues from there. It
// reports whether there is such a commit.
func (e *Engine) newestLast(ctx context.Context, at refs, taken []ledger.Pair) (bool, error) {
	steps, err := e.Repo.Steps(ctx, at.promoted, at.pending)
	if err != nil {
		return false, err
	}
	for i, t := range slices.Backward(taken) {
		if slices.Contains(steps, t.Outer) {
			copy(taken[i:], taken[i+1:])
			taken[len(taken)-1] = t
			return true, nil
		}
	}
	return false, nil
}

// moveOn updates the airlock's refs to match the ledger.
func (e *Engine) moveOn(ctx context.Context, f facts) (refs, error) {
	var updates []gitops.RefUpdate
	at := f.refs
	if last := f.ledger.Last().Outer; last != at.promoted {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("promoted"), Old: at.promoted, New: last})
		at.promoted = last
	}
	if len(f.ledger.Tail) == 0 {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("pending"), Old: at.pending})
		at.pending = ""
	}
	if len(updates) == 0 {
		return at, nil
	}
	return at, e.Repo.UpdateRefs(ctx, "airlock: landed by hand", updates...)
}
