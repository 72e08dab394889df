package build

import (
	"bytes"
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// rebasedTried bounds the new commits that are compared with landed ones in one cycle, since each may need a merge.
const rebasedTried = 1000

// Rebased returns pairs of new commits and the landed commits of which they are rebased forms: the agent has rebased its history, without
// commits that were left out when those landed. A new commit is such a form if it is what would have landed in the place of the landed
// commit: with the same author, date and message, and on the same parent with the same tree. The parent of the new commit is the landed
// commit before, or a form of that. A new commit that fails one of these comparisons, and the ones after it, land as usual.
func (t *Trees) Rebased(ctx context.Context, repo *gitops.Repository, inside history.Graph) (forms []ledger.Pair, err error) {
	l, before := t.plan.Ledger, t.plan.Found()
	image, there := l.Image(before)
	if !there || image.Synced || len(l.LeftOut()) == 0 {
		return nil, nil
	}
	for _, id := range t.plan.Chain[:min(len(t.plan.Chain), rebasedTried)] {
		landed, there := l.Following(image.Outer)
		if !there || landed.Aside || landed.Copy != "" || len(landed.Supersedes) > 0 || l.Superseded(landed.Outer) || t.refused(id) {
			break
		}
		if len(forms) == 0 {
			if without, err := t.without(ctx, inside, landed.Inner, id); err != nil || !without {
				return nil, err
			}
		}
		tree, err := t.wouldBe(ctx, repo, ledger.Pair{Inner: before, Outer: image.Outer}, id, landed)
		if err != nil {
			return nil, err
		}
		if tree == "" {
			break
		}
		own, err := t.Tree(ctx, id)
		if err != nil {
			return nil, err
		}
		before, image = id, ledger.Pair{Inner: id, Outer: landed.Outer, Merged: own != tree}
		forms = append(forms, image)
	}
	return forms, nil
}

// refused reports whether a verdict of the user keeps a new commit from landing.
func (t *Trees) refused(id gitops.OID) bool {
	r := t.plan.Decisions.ReviewOf(id)
	return r != nil && (r.Word.LeavesOut() || r.Word == review.Fix)
}

// without reports whether a landed commit has a commit in its history that has not landed and that a new commit does not have.
func (t *Trees) without(ctx context.Context, inside history.Graph, landed, id gitops.OID) (bool, error) {
	gone, err := inside.Unreached(ctx, []gitops.OID{landed}, []gitops.OID{id})
	return slices.ContainsFunc(gone, func(id gitops.OID) bool { return !t.plan.Ledger.Has(id) && !t.plan.Brought[id] }), err
}

// wouldBe returns the tree of a landed commit if a new commit is a form of it, and empty otherwise. before has the parent of the new commit,
// and the image of that parent.
func (t *Trees) wouldBe(ctx context.Context, repo *gitops.Repository, before ledger.Pair, id gitops.OID, landed ledger.Pair) (gitops.OID, error) {
	c, err := t.across.Commit(ctx, id)
	if err != nil {
		return "", err
	}
	was, err := t.across.Commit(ctx, landed.Inner)
	if err != nil {
		return "", err
	}
	outer, err := t.across.Commit(ctx, landed.Outer)
	if err != nil || len(c.Parents) != 1 || c.Parents[0] != before.Inner || len(outer.Parents) != 1 ||
		c.Author != was.Author || c.Encoding != was.Encoding || !bytes.Equal(c.Message, was.Message) {
		return "", err
	}
	if follows, err := t.follows(ctx, repo, before.Outer, outer.Parents[0]); err != nil || !follows {
		return "", err
	}
	onto, err := t.across.Commit(ctx, outer.Parents[0])
	if err != nil {
		return "", err
	}
	m, err := t.Change(ctx, before.Inner, id)
	if err != nil {
		return "", err
	}
	m.Ours = onto.Tree
	tree, conflicts, err := t.bridge.Merge(ctx, m)
	if gitops.Crashed(err) {
		return "", nil // it is built as usual, which reports the crash or the time
	}
	if err != nil || conflicts != nil || tree != outer.Tree {
		return "", err
	}
	return tree, nil
}

// follows reports whether the branch has no commits but the user's between two of its commits.
func (t *Trees) follows(ctx context.Context, repo *gitops.Repository, before, commit gitops.OID) (bool, error) {
	if before == commit {
		return true, nil
	}
	if !repo.IsAncestor(ctx, before, commit) {
		return false, nil
	}
	between, err := repo.Unreached(ctx, []gitops.OID{commit}, []gitops.OID{before})
	return !slices.ContainsFunc(between, t.plan.Ledger.HasOuter), err
}
