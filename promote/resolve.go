package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// ErrNoConflict reports that no commit waits because of a conflict.
var ErrNoConflict = errors.New("no conflict is held")

// Resolve brings the first conflicting pending commit to the branch. Usually it starts a merge in the user's working tree, as git merge
// does, and merging is true: once the user commits the merge, the commit counts as landed and the others continue. If the user has only
// taken landed commits off the branch, Resolve fast-forwards to the commit. A [hold.Error] reports what would hold a landing, too: the
// rules, a verdict, or files of the user in the way. A dry run only checks that.
func (e *Engine) Resolve(ctx context.Context) (step gitops.OID, merging bool, err error) {
	f, unlock, err := e.lockedFacts(ctx)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if step, err = e.conflicting(ctx, f); err != nil {
		return "", false, err
	}
	if err = e.mayEnter(ctx, f, step); err != nil {
		return step, false, err
	}
	request := land.Landing{Branch: e.Record.Branch, Old: f.refs.tip, New: step, Message: "merge: bring back commits of airlock " + e.Record.ID, Begun: e.Record.Base, Dir: e.Dir(), Config: f.config}
	switch merging = !e.Repo.IsAncestor(ctx, f.refs.tip, step); {
	case merging:
		err = hold.CheckMerge(ctx, e.Repo, request, f.settings.Limits)
	case e.Repo.Dry:
		err = land.Check(ctx, e.Repo, request)
	default:
		err = land.Land(ctx, e.Repo, request)
	}
	if collision, ok := errors.AsType[*land.CollisionError](err); ok {
		return "", false, &hold.Error{Hold: e.Collision(ctx, collision.Paths)}
	}
	if err == nil && merging && !e.Repo.Dry {
		err = hold.StartMerge(ctx, e.Repo, request)
	}
	return step, merging, hold.Crashed(step, err)
}

// conflicting returns the first pending commit if it waits because of a conflict.
func (e *Engine) conflicting(ctx context.Context, f facts) (gitops.OID, error) {
	if !f.before.Apart || f.refs.pending == "" {
		if h := hold.Behind(f.before.Holds); h != nil {
			return "", &hold.Error{Hold: *h}
		}
		return "", ErrNoConflict
	}
	positions, err := hold.Positions(ctx, e.Repo, e.Record, f.refs.tip, f.refs.promoted)
	if err != nil {
		return "", err
	}
	if len(positions) > 0 {
		return "", &hold.Error{Hold: positions[0]}
	}
	steps, err := e.Repo.Steps(ctx, f.refs.tip, f.refs.pending)
	if err != nil {
		return "", err
	}
	// A commit that landed before and that the user has rewritten since must not be merged again.
	i := slices.IndexFunc(steps, func(step gitops.OID) bool {
		return slices.ContainsFunc(f.ledger.Tail, func(p ledger.Pair) bool { return p.Outer == step })
	})
	if i < 0 {
		return "", ErrNoConflict
	}
	return steps[i], nil
}

// mayEnter returns a [hold.Error] if a rule or a verdict holds a pending commit that comes to the branch with another one.
func (e *Engine) mayEnter(ctx context.Context, f facts, step gitops.OID) error {
	if f.rules.broken != nil {
		return &hold.Error{Hold: hold.TeamUnreadable(f.rules.broken)}
	}
	results, err := f.rules.results()
	if err != nil {
		return err
	}
	entering, err := e.Repo.Range(ctx, fmt.Sprintf("%s..%s", f.refs.tip, step))
	if err != nil {
		return err
	}
	verdicts := f.verdicts()
	for _, t := range f.ledger.Tail {
		if !slices.Contains(entering, t.Outer) {
			continue
		}
		v := results.Of(t.Outer)
		switch {
		case v == nil, v.Late, results.Unchecked(f.ledger.Tail, t.Outer):
			return &hold.Error{Hold: ledger.Hold{Reason: ledger.Policy, Message: fmt.Sprintf("commit %.12s has not been checked yet", t.Outer), Next: []string{"git airlock promote"}}}
		case v.Holds():
			return &hold.Error{Hold: hold.Policy(*v, 0)}
		case verdicts.Holds(t.Inner):
			return &hold.Error{Hold: e.review(ctx, f)[0]}
		}
	}
	return nil
}
