package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// tree returns the tree of an outer commit: the three-way merge of the agent's changes since the first parent with
// the tree of the first parent's image.
func (b *builder) tree(ctx context.Context, l quarantine.Link, theirs gitops.OID, parents []gitops.OID) (gitops.OID, error) {
	first := b.before(l)
	if first == "" || b.how == asTheyAre || b.equal(first, parents[0]) {
		return theirs, nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil {
		return "", err
	}
	ours, err := b.treeOf(ctx, parents[0])
	switch {
	case err != nil:
		return "", err
	case ours == base || ours == theirs:
		return theirs, nil
	case base == theirs:
		return ours, nil
	}
	b.merging = true
	merge := quarantine.Merge{Base: base, Ours: ours, Theirs: theirs}
	tree, conflicts, err := b.request.Bridge.Merge(ctx, merge)
	if err != nil && b.request.Fetch(ctx) {
		tree, conflicts, err = b.request.Bridge.Merge(ctx, merge)
	}
	b.stopped = conflicts
	return tree, err
}

// before returns the inner commit from which a commit's changes count: its first parent, or, for the first commit to
// land, the commit that landed last. It returns empty for a root commit that was merged in.
func (b *builder) before(l quarantine.Link) gitops.OID {
	switch {
	case l.Commit == b.plan.Chain[0]:
		return b.plan.Since
	case len(l.Parents) == 0:
		return ""
	}
	return l.Parents[0]
}

// equal reports whether an inner commit and an image are known to have the same tree, without reading a tree.
func (b *builder) equal(inner, image gitops.OID) bool {
	if inner == image {
		return true // a commit of the branch
	}
	p, ok := b.done[inner]
	if !ok {
		p, _ = b.plan.Ledger.Image(inner)
	}
	return p.Outer == image && !p.Merged
}

func (b *builder) treeOf(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := b.trees[commit]; ok {
		return tree, nil
	}
	c, err := b.request.Across.Commit(ctx, commit)
	b.trees[commit] = c.Tree
	return c.Tree, err
}

// baseTree returns the tree from which the changes of a commit count: the tree of the commit before it. If the commit
// goes back behind landed commits, that tree is merged with the agent's later landed changes.
func (b *builder) baseTree(ctx context.Context, l quarantine.Link) (gitops.OID, error) {
	base, err := b.innerTree(ctx, b.before(l))
	if err != nil || b.plan.Fork == "" || l.Commit != b.plan.Chain[0] {
		return base, err
	}
	fork, err := b.innerTree(ctx, b.plan.Fork)
	if err != nil {
		return "", err
	}
	landed, err := b.innerTree(ctx, b.plan.Last.Inner)
	if err != nil {
		return "", err
	}
	tree, conflicts, err := b.request.Bridge.Merge(ctx, quarantine.Merge{Base: fork, Ours: base, Theirs: landed})
	if conflicts != nil {
		return landed, err
	}
	return tree, err
}

// withoutDropped returns the tree of an inner commit without the changes of dropped commits before it. A dropped commit gets
// the tree of its first parent, as if it had changed nothing. The commits after it are merged, so that they bring
// only their own changes.
func (b *builder) withoutDropped(ctx context.Context, l quarantine.Link, inner gitops.Commit) (gitops.OID, error) {
	if len(l.Parents) == 0 || b.plan.Dropped == 0 {
		return inner.Tree, nil
	}
	first := l.Parents[0]
	if b.plan.Drops(l.Commit) {
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
	tree, conflicts, err := b.request.Bridge.Merge(ctx, quarantine.Merge{Base: raw, Ours: b.trees[first], Theirs: inner.Tree})
	if err != nil {
		return "", err
	}
	if conflicts != nil {
		b.stopped, b.lacking = conflicts, &ledger.Dropped{Commit: l.Commit, Subject: inner.Subject()}
		return "", nil
	}
	if tree != inner.Tree {
		b.raw[l.Commit] = inner.Tree
	}
	return tree, nil
}

// findExcluded finds the files that the snapshot left out (airlock.exclude). The agent's trees lack these files. They are
// put back into every tree before it is used, so that the agent can neither remove nor replace them.
func (b *builder) findExcluded(ctx context.Context) error {
	base := b.plan.Ledger.Base
	whole, err := b.request.Across.Commit(ctx, base.Outer)
	if err != nil {
		return err
	}
	part, err := b.request.Across.Commit(ctx, base.Inner)
	if err != nil {
		return err
	}
	b.overlay, err = b.request.Bridge.Overlay(ctx, b.request.Across, whole.Tree, part.Tree)
	return err
}

// restoreExcluded puts the files that the snapshot left out back into a tree.
func (b *builder) restoreExcluded(ctx context.Context, tree gitops.OID) (gitops.OID, error) {
	if b.overlay == nil {
		return tree, nil
	}
	return b.overlay.Apply(ctx, tree)
}

// innerTree returns the tree of an inner commit, including the files that the snapshot left out.
func (b *builder) innerTree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := b.trees[commit]; ok {
		return tree, nil
	}
	c, err := b.request.Across.Commit(ctx, commit)
	if err != nil {
		return "", err
	}
	if b.plan.Brought[commit] || commit == b.plan.Last.Outer {
		return c.Tree, nil // commits of the user's branch have all files
	}
	b.trees[commit], err = b.restoreExcluded(ctx, c.Tree)
	return b.trees[commit], err
}

// patch checks, if the request asks for it, that git format-patch and git am make the same tree of a commit, and
// stops the building otherwise. A mail can carry neither a merge nor an empty commit.
func (b *builder) patch(ctx context.Context, l quarantine.Link, theirs gitops.OID, parents []gitops.OID, want gitops.OID) error {
	if !b.request.ByPatch || b.how == asTheyAre || len(parents) != 1 {
		return nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil || base == theirs {
		return err
	}
	ours, err := b.treeOf(ctx, parents[0])
	if err != nil {
		return err
	}
	tree, err := b.request.Bridge.Patch(ctx, base, theirs, ours)
	var refused *quarantine.RefusedPatch
	switch {
	case errors.As(err, &refused):
		b.refused = fmt.Sprintf("git am does not apply commit %.12s: %s", l.Commit, refused.Said)
	case err != nil:
		return err
	case tree != want:
		b.refused = fmt.Sprintf("git am makes a tree for commit %.12s that differs from its own", l.Commit)
	}
	if b.refused != "" {
		b.stopped = []string{}
	}
	return nil
}
