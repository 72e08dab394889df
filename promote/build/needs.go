package build

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// checkNeeds stops the building at a commit that conflicts or changes nothing because the branch lacks commits that were left out when
// others landed. The walk of a plan does not find such a commit: the trees of landed commits have the changes of those left out.
func (b *builder) checkNeeds(ctx context.Context, l quarantine.Link, c gitops.Commit, theirs, tree gitops.OID, parents []gitops.OID) error {
	if b.how == asTheyAre || len(b.plan.Ledger.LeftOut()) == 0 || b.stopped == nil && len(parents) > 1 {
		return nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil {
		return err
	}
	ours, err := b.treeOf(ctx, parents[0])
	if err != nil || b.stopped == nil && (tree != ours || base == theirs) {
		return err
	}
	left, err := b.leftOutBefore(ctx, l.Commit)
	if err != nil || len(left) == 0 {
		return err
	}
	without, conflicts, err := b.withoutChanges(ctx, base, left)
	if err != nil {
		return err
	}
	if conflicts == nil {
		if tree, conflicts, err = b.mergeOn(ctx, quarantine.Merge{Base: base, Ours: without, Theirs: theirs}); err != nil {
			return err
		}
	}
	if conflicts != nil || tree == without && len(parents) == 1 {
		if b.stopped == nil {
			b.stopped = &Conflict{Commit: l.Commit, Paths: []string{}}
		}
		b.stopped.Lacking = &ledger.Dropped{Commit: l.Commit, Subject: c.Subject()}
	}
	return nil
}

// leftOutBefore returns the commits that were left out when others landed, and that a commit reaches.
func (b *builder) leftOutBefore(ctx context.Context, commit gitops.OID) ([]gitops.OID, error) {
	seen := map[gitops.OID]bool{b.plan.Ledger.Base.Inner: true}
	for todo := []gitops.OID{commit}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] || b.plan.Brought[id] || b.plan.Ledger.HasOuter(id) {
			continue
		}
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		seen[id], todo = true, append(todo, c.Parents...)
	}
	return slices.DeleteFunc(b.plan.Ledger.LeftOut(), func(id gitops.OID) bool { return !seen[id] }), nil
}

// withoutChanges takes the changes of some commits back from an inner tree, the newest first.
func (b *builder) withoutChanges(ctx context.Context, tree gitops.OID, commits []gitops.OID) (without gitops.OID, conflicts []string, err error) {
	for _, id := range slices.Backward(commits) {
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return "", nil, err
		}
		parent := b.plan.Ledger.Base.Inner
		if len(c.Parents) > 0 {
			parent = c.Parents[0]
		}
		m := quarantine.Merge{Ours: tree}
		if m.Base, err = b.request.Trees.Tree(ctx, id); err != nil {
			return "", nil, err
		}
		if m.Theirs, err = b.request.Trees.Tree(ctx, parent); err != nil {
			return "", nil, err
		}
		if tree, conflicts, err = b.mergeOn(ctx, m); err != nil || conflicts != nil {
			return "", conflicts, err
		}
	}
	return tree, nil, nil
}
