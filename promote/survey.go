package promote

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/byhand"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/provenance"
	"github.com/git-airlock/git-airlock/promote/review"
)

// facts are the input of a cycle: the settings, and the state outside and inside.
type facts struct {
	now     time.Time
	options Options
	before  ledger.Outcome
	configured
	refs     refs
	ledger   *ledger.Ledger
	adopted  int           // commits that the user has landed by hand
	replaced []ledger.Pair // pending commits in the place of which the user has landed former ones
	rules    ruleset
	main     gitops.OID                            // the inner commit to promote; empty if there is none
	mainErr  error                                 // why it could not be read
	beside   gitops.OID                            // tip of the inner main if another commit is promoted; empty if there is none
	patches  func() (map[gitops.OID]string, error) // see [Engine.patchIDs]

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
	named    map[string]gitops.OID // all refs as they were read; those in notesRefs are kept up to date
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

// survey reads the facts. known are those that a command has read under the same lock, or nil. They are used again, unless the user's git has
// moved a ref since.
func (e *Engine) survey(ctx context.Context, options Options, before ledger.Outcome, now time.Time, known *facts) (f facts, err error) {
	var all sync.WaitGroup
	var main, beside gitops.OID
	var mainErr error
	all.Go(func() { main, beside, mainErr = e.wanted(ctx, options) })
	if known != nil {
		if at, err := e.refs(ctx); err != nil || !maps.Equal(at.named, known.refs.named) {
			known = nil
		}
	}
	if known != nil {
		f = *known
	} else {
		f, err = e.read(ctx)
	}
	all.Wait()
	f.now, f.options, f.before, f.main, f.beside, f.mainErr = now, options, before, main, beside, mainErr
	f.settings.Engine = cmp.Or(options.Engine, f.settings.Engine)
	if err == nil {
		f, err = e.adopt(ctx, f)
	}
	if err == nil && known == nil {
		f.rules, err = e.readRules(ctx, f)
		f.patches = e.patchIDs(ctx, f.rules.decisions, ledger.GateResults{})
	}
	if err == nil {
		f, err = e.adoptLeftOut(ctx, f)
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
	c.settings, err = ReadSettings(identity.Lasting(c.origins).With(e.Record.Settings))
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
	f.quarantine = e.quarantine()
	f.inside, f.reached = f.quarantine.Inspect(ctx), map[gitops.OID]reached{}
	base := ledger.Pair{Inner: e.Record.Root, Outer: e.Record.Base}
	f.ledger, err = e.ledgers.Read(e.Dir(), base, f.refs.promoted, f.refs.pending)
	if moved, ok := errors.AsType[*ledger.RefError](err); ok {
		moved.Originals, _ = e.Repo.Refs(ctx, ledger.FilterKeeps+"refs/airlock/"+e.Record.ID) // without them, the error names one command less
	}
	return f, err
}

// wanted returns the inner commit to promote, or empty if the workspace has none. If it is not that of main, wanted also returns the tip of main.
func (e *Engine) wanted(ctx context.Context, options Options) (tip, main gitops.OID, err error) {
	if options.Known || e.Store.WorkspaceGone(e.Record) {
		return "", "", nil
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return "", "", err
	}
	if options.From == "" {
		tip, err = exporter.Main(ctx)
	} else if tip, err = exporter.Resolve(ctx, options.From); err == nil {
		main, err = exporter.Main(ctx)
	}
	return tip, main, err
}

// branch returns the user's branch, as the facts have it. If the user has renamed it, what they land by hand is on the renamed one.
func (e *Engine) branch(ctx context.Context, f facts) byhand.Branch {
	b := byhand.Branch{Repo: e.Repo, Name: e.Record.Branch, Tip: f.refs.tip, Promoted: f.refs.promoted, Pending: f.refs.pending, Ledger: f.ledger}
	if b.Tip == "" && b.Pending != "" {
		if now := hold.Renamed(ctx, e.Repo, b.Name); now != "" {
			b.Name = now
			b.Tip, _ = e.Repo.Ref(ctx, now) // without it, nothing counts as landed
		}
	}
	return b
}

// adopt marks as landed the pending commits that the user has merged, or fast-forwarded to, by hand.
func (e *Engine) adopt(ctx context.Context, f facts) (facts, error) {
	taken, err := e.branch(ctx, f).Waiting(ctx)
	if err != nil || len(taken.Pairs) == 0 {
		return f, err
	}
	return e.taken(ctx, f, taken)
}

// adoptLeftOut does the same with commits that were undone, rejected or dropped. They get a note again, and are not undone any more. A
// verdict stays.
func (e *Engine) adoptLeftOut(ctx context.Context, f facts) (facts, error) {
	taken, err := e.branch(ctx, f).LeftOut(ctx, f.rules.decisions, f.refs.ops, func() (byhand.Line, error) {
		tip, unseen := e.seen(ctx, f)
		links, _, err := e.unlanded(ctx, f, tip)
		return byhand.Line{Inspector: f.inside, Tip: tip, Links: links}, errors.Join(unseen, err)
	})
	if err == nil && len(taken.Pairs) > 0 {
		err = e.noteAgain(ctx, f, taken)
	}
	if err != nil || len(taken.Pairs) == 0 {
		return f, err
	}
	if f.refs, err = e.refs(ctx); err != nil {
		return f, err
	}
	for _, p := range taken.Pairs {
		f.replaced = append(f.replaced, f.ledger.WaitingFor(p.Inner)...)
		if r := f.rules.decisions.ReviewOf(p.Inner); r != nil && r.Word == review.Undone {
			f.rules.decisions = f.rules.decisions.Forget(p.Inner)
		}
	}
	if f, err = e.taken(ctx, f, taken); err == nil {
		err = f.rules.decisions.Write(e.Dir())
	}
	return f, err
}

// noteAgain writes the provenance notes of commits that have none.
func (e *Engine) noteAgain(ctx context.Context, f facts, taken byhand.Taken) error {
	notes := taken.Notes
	results, err := f.rules.results()
	if err != nil {
		return err
	}
	if notes[NotesRef] == nil {
		notes[NotesRef] = map[gitops.OID]string{}
	}
	var made []quarantine.Note // the others have facts
	for _, p := range taken.Pairs {
		c, err := f.inside.Commit(ctx, p.Inner)
		if err != nil {
			return err
		}
		author, _ := gitops.SplitIdent(c.Author)
		result := cmp.Or(results.Last(p.Outer), &ledger.GateResult{Late: true})
		if notes[NotesRef][p.Outer] == "" {
			made = append(made, provenance.Note(e.Record, p, author, result, f.rules.decisions.ReviewOf(p.Inner), p.Without, f.now))
			notes[NotesRef][p.Outer] = made[len(made)-1].Text
		}
	}
	if err = f.ledger.KeepFacts(made, nil); err != nil {
		return err
	}
	for ref, texts := range notes {
		if len(texts) > 0 {
			c := gitops.NotesCommit{Ref: ref, From: f.refs.named[ref], Who: f.settings.User.String(), Message: "airlock: landed by hand"}
			err = errors.Join(err, e.Repo.SetNotes(ctx, c, texts))
		}
	}
	return err
}

// taken marks commits as landed.
func (e *Engine) taken(ctx context.Context, f facts, taken byhand.Taken) (facts, error) {
	f.ledger.Adopt(taken.Pairs, taken.OnLine)
	clear(f.reached)
	if err := f.ledger.Save(); err != nil { // the refs decide how much of the ledger counts
		return f, err
	}
	f.adopted += len(taken.Pairs)
	var err error
	f.refs, err = e.moveOn(ctx, f)
	return f, err
}

// moveOn updates the airlock's refs to match the ledger.
func (e *Engine) moveOn(ctx context.Context, f facts) (refs, error) {
	var updates []gitops.RefUpdate
	at := f.refs
	if last := f.ledger.Last().Outer; last != at.promoted {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("promoted"), Old: at.promoted, New: last})
		at.promoted = last
	}
	if tip := f.ledger.PendingTip(); tip != at.pending {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("pending"), Old: at.pending, New: tip})
		at.pending = tip
	}
	if len(updates) == 0 {
		return at, nil
	}
	return at, e.Repo.UpdateRefs(ctx, "airlock: landed by hand", updates...)
}
