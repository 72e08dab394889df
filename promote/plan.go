package promote

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// planned is a plan and the inner commit at which the landing ends.
type planned struct {
	*history.Plan
	target gitops.OID          // empty if everything may land
	held   map[gitops.OID]bool // inner commits that may not land now
	asked  map[gitops.OID]bool // those of held for which a verdict alone is not enough
	trees  *build.Trees        // nil if there is nothing to build
}

func (p planned) entered(o ledger.Outcome) ledger.Outcome {
	o.Inner, o.From, o.Main, o.Target, o.Dropped, o.Waits = p.Tip, p.From, p.Main, p.target, p.Dropped, p.Waits
	return o
}

// plan collects the facts of the plan and makes it. held lists commits that may not land now.
func (e *Engine) plan(ctx context.Context, f facts, t taken, held map[gitops.OID]bool) (planned, error) {
	links, brought, err := e.unlanded(ctx, f, t.tip)
	if err != nil {
		return planned{}, err
	}
	if t.From == "" {
		joined, err := history.Joins(ctx, f.ledger, f.quarantine, t.tip, links)
		if err != nil {
			return planned{}, err
		}
		f.ledger.Join(joined)
	}
	waiting, asked := f.verdicts().Waiting(append(quarantine.Commits(links), f.ledger.LeftOut()...))
	maps.Copy(waiting, held)
	maps.Copy(asked, held)
	left, err := e.leftOut(ctx, f, t.tip, links, waiting, brought)
	if err != nil {
		return planned{}, err
	}
	p, err := history.New(ctx, history.Facts{Tip: t.tip, Links: links, Brought: brought, Ledger: f.ledger, Decisions: f.rules.decisions, Source: t.Source, Left: left},
		f.quarantine, e.Repo)
	made := planned{Plan: p, held: waiting, asked: asked}
	if err == nil && f.options.UpTo != "" {
		revision, _ := e.Repo.Commit(ctx, f.options.UpTo)
		made.target, err = p.Target(f.options.UpTo, revision, f.options.target)
	}
	return made, err
}

// leftOut returns the commits that were left out when later ones landed and that the inner commit tip still reaches, and the commits that landed
// commits lack. Some of these have commits of the user's branch as parents, which leftOut adds to brought.
func (e *Engine) leftOut(ctx context.Context, f facts, tip gitops.OID, links []quarantine.Link, held, brought map[gitops.OID]bool) (left history.Left, err error) {
	out := history.LeftOut{Tip: tip, Commits: map[gitops.OID]bool{}, Held: held, Landed: f.ledger.Has,
		Drops: func(id gitops.OID) bool { return f.rules.decisions.DropOf(id) != nil }}
	last := f.ledger.Last().Inner
	back := len(links) > 0 && !slices.ContainsFunc(links, func(l quarantine.Link) bool { return slices.Contains(l.Parents, last) })
	waits := false // an absent commit of a landed one matters
	for _, id := range f.ledger.LeftOut() {
		if out.Drops(id) {
			waits = waits || back || slices.ContainsFunc(links, func(l quarantine.Link) bool { return len(l.Parents) > 1 || held[l.Commit] || out.Drops(l.Commit) })
			continue
		}
		out.Commits[id], waits = true, true
	}
	if !waits {
		return left, nil
	}
	outside := f.outside(brought)
	out.History, err = f.inside.History(ctx, tip, func(id gitops.OID) bool { return id == f.ledger.Base.Inner || outside(id) }, f.settings.Limits)
	if errors.Is(err, quarantine.ErrMany) {
		out.History, err = f.quarantine.History(ctx, tip, []gitops.OID{f.ledger.Base.Inner})
	}
	if err == nil {
		left, err = out.Left(), e.addBrought(ctx, f, out.History, brought)
	}
	return left, err
}

// walk sets the held commits of a plan aside, with the commits that do not stand without them, if other commits can land before them.
func (e *Engine) walk(ctx context.Context, p planned, trees *build.Trees, w *lazyBridge) (_ planned, err error) {
	if len(p.Links)+len(p.Aside) == 0 {
		return p, nil
	}
	if p.trees = trees; trees == nil {
		if p.trees, err = e.treesOf(ctx, p, w); err != nil {
			return p, err
		}
	}
	return p, p.Walk(ctx, p.trees, p.held, p.asked)
}

// treesOf returns the trees of a plan's commits.
func (e *Engine) treesOf(ctx context.Context, p planned, w *lazyBridge) (*build.Trees, error) {
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	return build.NewTrees(p.Plan, e.Record.Partial, e.Dir(), w.bridge, w.across), nil
}

// reached holds the commits that an inner commit reaches and that have not landed.
type reached struct {
	links   []quarantine.Link
	brought map[gitops.OID]bool // those that are commits of the user's branch, and are not among the links
}

// seen returns the inner commit up to which earlier cycles have built commits. One that failed has not written it, and may have made commits
// pending that the one before it did not know.
func (e *Engine) seen(ctx context.Context, f facts) (gitops.OID, error) {
	tip, newest := cmp.Or(f.before.Inner, f.ledger.Newest()), f.ledger.Newest()
	if f.before.Failure == "" || len(f.ledger.Tail) == 0 {
		return tip, nil
	}
	links, _, err := e.unlanded(ctx, f, tip)
	if err == nil && !slices.ContainsFunc(links, func(l quarantine.Link) bool { return l.Commit == newest }) {
		tip = newest
	}
	return tip, err
}

// unlanded lists the commits that an inner commit reaches and that have not landed. It also returns the inner commits
// that are commits of the user's branch: those exist outside and do not land again.
func (e *Engine) unlanded(ctx context.Context, f facts, tip gitops.OID) ([]quarantine.Link, map[gitops.OID]bool, error) {
	r, known := f.reached[tip]
	if !known {
		var err error
		if r, err = e.reach(ctx, f, tip); err != nil {
			return nil, nil, err
		}
		f.reached[tip] = r
	}
	return slices.Clone(r.links), maps.Clone(r.brought), nil
}

func (e *Engine) reach(ctx context.Context, f facts, tip gitops.OID) (reached, error) {
	brought := map[gitops.OID]bool{}
	outside := f.outside(brought)
	links, err := f.inside.History(ctx, tip, func(id gitops.OID) bool { return f.ledger.Has(id) || outside(id) }, f.settings.Limits)
	if errors.Is(err, quarantine.ErrMany) {
		links, err = f.quarantine.History(ctx, tip, []gitops.OID{f.ledger.Base.Inner, f.ledger.Last().Inner})
		links = slices.DeleteFunc(links, func(l quarantine.Link) bool { return f.ledger.Has(l.Commit) })
	}
	if err == nil {
		err = e.addBrought(ctx, f, links, brought)
	}
	return reached{slices.DeleteFunc(links, func(l quarantine.Link) bool { return brought[l.Commit] }), brought}, err
}

// outside returns a function that reports whether a commit is the airlock's base or a landed commit, and then adds it to brought.
func (f facts) outside(brought map[gitops.OID]bool) func(gitops.OID) bool {
	return func(id gitops.OID) bool {
		if id != f.ledger.Base.Outer && !f.ledger.HasOuter(id) {
			return false
		}
		brought[id] = true
		return true
	}
}

// addBrought adds the links that are commits of the user's branch. Any such history ends in the base, in a landed
// commit, or in a root of its own. If the links contain none of these, no git process is started.
func (e *Engine) addBrought(ctx context.Context, f facts, links []quarantine.Link, brought map[gitops.OID]bool) error {
	rootless := func(l quarantine.Link) bool { return len(l.Parents) == 0 }
	if len(links) == 0 || len(brought) == 0 && !slices.ContainsFunc(links, rootless) {
		return nil
	}
	commits := quarantine.Commits(links)
	there, err := e.Repo.Present(ctx, commits)
	if err != nil || len(there) == 0 {
		return err
	}
	branch := []gitops.OID{f.refs.onto(), f.refs.promoted, f.ledger.Base.Outer}
	if f.refs.tip != "" {
		past, err := e.Repo.Past(ctx, e.Record.Branch) // also commits that the user has removed from the branch must not land as the agent's
		if err != nil {
			return err
		}
		branch = append(branch, past...)
	}
	branch = slices.AppendSeq(branch, maps.Keys(brought))
	others, err := e.Repo.Unreached(ctx, there, branch)
	if _, ok := errors.AsType[*gitops.Error](err); ok {
		return nil // an object of these commits is missing, so that they are on no branch
	}
	if err != nil {
		return err
	}
	for _, id := range there {
		if !slices.Contains(others, id) {
			brought[id] = true
		}
	}
	return nil
}
