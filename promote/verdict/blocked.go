package verdict

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// blocked maps the commits that do not apply without the held commits and without the rejected ones to the paths that conflict.
func (q *request) blocked(ctx context.Context, held map[gitops.OID]bool) (map[gitops.OID][]string, error) {
	trees, err := q.Trees(ctx)
	if err != nil {
		return nil, err
	}
	if len(q.left) == 0 {
		return q.Plan.Needs(ctx, held, trees)
	}
	return q.blockedOnBranch(ctx, held, trees)
}

// blockedOnBranch is blocked for a branch that lacks commits because later ones landed without them. It applies the change of each commit to
// the tree of the branch. A commit that conflicts there is blocked only if it needs one that is left out: the user's own commit may be the cause.
func (q *request) blockedOnBranch(ctx context.Context, held map[gitops.OID]bool, trees *build.Trees) (map[gitops.OID][]string, error) {
	blocked, out := map[gitops.OID][]string{}, func(id gitops.OID) bool { return held[id] || q.Plan.Drops(id) }
	brings := q.Plan.Brings(q.all, out)
	for _, a := range q.Plan.Earlier { // these also bring commits that were dropped before others landed
		brings[a.Commit] = append(brings[a.Commit], a.Brings...)
	}
	ours, err := q.e.Repo.Tree(ctx, q.Tip)
	if err == nil {
		ours, err = q.withoutUndone(ctx, ours, trees)
	}
	if err != nil {
		return blocked, err
	}
	for _, l := range q.all {
		if out(l.Commit) || len(l.Parents) == 0 {
			continue
		}
		if slices.ContainsFunc(brings[l.Commit], out) {
			blocked[l.Commit] = []string{}
			continue
		}
		m, err := trees.Change(ctx, l.Parents[0], l.Commit)
		if err != nil {
			return blocked, err
		}
		if m.Base == m.Theirs {
			continue
		}
		tree, conflicts, err := trees.Merge(ctx, m.Base, ours, m.Theirs)
		if err != nil {
			return blocked, err
		}
		if conflicts == nil && (tree != ours || len(l.Parents) > 1) {
			ours = tree
			continue
		}
		needs, err := trees.Needs(ctx, l.Commit, func(id gitops.OID) bool { return out(id) || blocked[id] != nil })
		if err != nil {
			return blocked, err
		}
		if needs {
			blocked[l.Commit] = append([]string{}, conflicts...)
		}
	}
	return blocked, nil
}

// withoutUndone returns the tree of the branch without the changes that the agent's first new commit undoes, because a rebase or a reset has
// gone back behind them. If they cannot be taken out, it returns the tree of the branch.
func (q *request) withoutUndone(ctx context.Context, branch gitops.OID, trees *build.Trees) (gitops.OID, error) {
	if len(q.Plan.Supersedes) == 0 {
		return branch, nil
	}
	before := q.Ledger.Base.Inner
	for _, l := range q.all {
		if l.Commit == q.Plan.Chain[0] && len(l.Parents) > 0 {
			before = l.Parents[0]
		}
	}
	m, err := trees.Change(ctx, q.Plan.Last.Inner, before)
	if err != nil {
		return branch, err
	}
	without, conflicts, err := trees.Merge(ctx, m.Base, branch, m.Theirs)
	if err != nil || conflicts != nil {
		return branch, err
	}
	return without, nil
}

// blockedByVerdicts maps the commits that do not apply without the rejected commits, and without those that the agent must fix, to the paths
// that conflict.
func (q *request) blockedByVerdicts(ctx context.Context) (map[gitops.OID][]string, error) {
	held := map[gitops.OID]bool{}
	for id, word := range q.Verdicts.Words {
		if word == review.Fix {
			held[id] = true
		}
	}
	if len(held)+len(q.Decisions.Dropped) == 0 || len(q.all) == 0 {
		return nil, nil
	}
	blocked, err := q.blocked(ctx, held)
	if err != nil || slices.ContainsFunc(q.Ledger.Tail, func(t ledger.Pair) bool { return held[t.Inner] || q.Plan.Drops(t.Inner) }) {
		return blocked, err
	}
	last, err := ledger.ReadOutcome(q.e.Dir())
	if !last.Apart { // they were built on the branch, and on none of those commits
		for _, t := range q.Ledger.Tail {
			delete(blocked, t.Inner)
		}
	}
	return blocked, err
}

// dependents returns the other commits that do not apply without the given commits.
func (q *request) dependents(ctx context.Context, without []gitops.OID) ([]gitops.OID, error) {
	held := gitops.SetOf(without...)
	blocked, err := q.blocked(ctx, held)
	var more []gitops.OID
	for _, l := range q.all {
		if _, needs := blocked[l.Commit]; needs && !held[l.Commit] && !q.Plan.Drops(l.Commit) {
			more = append(more, l.Commit)
		}
	}
	return more, err
}
