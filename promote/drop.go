package promote

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// A commit that the user drops has the image of its first parent, as if it had changed nothing; what follows is
// merged so that it brings what it changed itself.

// without is the tree of an inner commit without what dropped commits before it changed.
func (b *builder) without(ctx context.Context, l gitops.Link, inner gitops.Commit) (gitops.OID, error) {
	if len(l.Parents) == 0 || b.dropped == 0 {
		return inner.Tree, nil
	}
	first := l.Parents[0]
	if b.drops(l.Commit) {
		tree, err := b.innerTree(ctx, first)
		if tree != inner.Tree {
			b.raw[l.Commit] = inner.Tree
		}
		return tree, err
	}
	raw, changed := b.raw[first]
	if !changed {
		return inner.Tree, nil
	}
	tree, conflicts, err := b.bridge.Merge(ctx, gitops.Merge{Base: raw, Ours: b.trees[first], Theirs: inner.Tree})
	if err != nil {
		return "", err
	}
	if conflicts != nil {
		b.stopped, b.lacking = conflicts, &Dropped{Commit: l.Commit, Subject: inner.Subject()}
		return "", nil
	}
	if tree != inner.Tree {
		b.raw[l.Commit] = inner.Tree
	}
	return tree, nil
}

// instead is what stands for a dropped commit: its first parent's image, or where the branch stands.
func (b *builder) instead(l gitops.Link) pair {
	p := pair{outer: b.onto, merged: b.last.merged}
	if len(l.Parents) > 0 {
		p, _ = b.image(l.Parents[0])
	}
	return pair{inner: l.Commit, outer: p.outer, merged: p.merged}
}
