package promote

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// Of a snapshot that was taken without some files (airlock.exclude), the agent's trees lack them. They are put
// back into every tree before anything is made of it: then such an airlock is like any other, and nothing that the
// agent was not shown can be removed by it, or replaced.

// cover finds what was left out.
func (b *builder) cover(ctx context.Context) error {
	whole, err := b.across.Commit(ctx, b.base.outer)
	if err != nil {
		return err
	}
	part, err := b.across.Commit(ctx, b.base.inner)
	if err != nil {
		return err
	}
	b.overlay, err = b.bridge.Overlay(ctx, b.across, whole.Tree, part.Tree)
	return err
}

// complete puts back what was left out of the snapshot.
func (b *builder) complete(ctx context.Context, tree gitops.OID) (gitops.OID, error) {
	if b.overlay == nil {
		return tree, nil
	}
	return b.overlay.Apply(ctx, tree)
}

// innerTree is the tree of an inner commit, complete.
func (b *builder) innerTree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := b.trees[commit]; ok {
		return tree, nil
	}
	c, err := b.across.Commit(ctx, commit)
	if err != nil {
		return "", err
	}
	if b.brought[commit] || commit == b.last.outer {
		return c.Tree, nil // the user's have all
	}
	b.trees[commit], err = b.complete(ctx, c.Tree)
	return b.trees[commit], err
}
