package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// tree returns the tree of an outer commit: the three-way merge of what the agent changed since the first parent,
// and what the first parent's image has.
func (b *builder) tree(ctx context.Context, l gitops.Link, theirs gitops.OID, parents []gitops.OID) (gitops.OID, error) {
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
	merge := gitops.Merge{Base: base, Ours: ours, Theirs: theirs}
	tree, conflicts, err := b.request.Bridge.Merge(ctx, merge)
	if err != nil && b.request.Fetch(ctx) {
		tree, conflicts, err = b.request.Bridge.Merge(ctx, merge)
	}
	b.stopped = conflicts
	return tree, err
}

// before returns the inner commit from which a commit's changes count: its first parent, or for the first one to
// land what landed last. It is empty for a history of its own that was merged.
func (b *builder) before(l gitops.Link) gitops.OID {
	switch {
	case l.Commit == b.plan.Chain[0]:
		return b.plan.Since
	case len(l.Parents) == 0:
		return ""
	}
	return l.Parents[0]
}

// equal reports, without reading a tree, that an inner commit and an image have the same one.
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

// baseTree returns the tree from which the changes of a commit count: that of the commit before, and for a commit that
// goes back behind landed ones, merged with what the agent has done since.
func (b *builder) baseTree(ctx context.Context, l gitops.Link) (gitops.OID, error) {
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
	tree, conflicts, err := b.request.Bridge.Merge(ctx, gitops.Merge{Base: fork, Ours: base, Theirs: landed})
	if conflicts != nil {
		return landed, err
	}
	return tree, err
}

// without returns the tree of an inner commit without what dropped commits before it changed. A dropped commit has
// the tree of its first parent, as if it had changed nothing; what follows is merged so that it brings only its own
// changes.
func (b *builder) without(ctx context.Context, l gitops.Link, inner gitops.Commit) (gitops.OID, error) {
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
	tree, conflicts, err := b.request.Bridge.Merge(ctx, gitops.Merge{Base: raw, Ours: b.trees[first], Theirs: inner.Tree})
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

// cover finds the files that the snapshot left out (airlock.exclude). The agent's trees lack them; they are put back
// into every tree before anything is made of it, so that the agent can neither remove nor replace them.
func (b *builder) cover(ctx context.Context) error {
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

// complete puts back what the snapshot left out.
func (b *builder) complete(ctx context.Context, tree gitops.OID) (gitops.OID, error) {
	if b.overlay == nil {
		return tree, nil
	}
	return b.overlay.Apply(ctx, tree)
}

// innerTree returns the tree of an inner commit, complete.
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
	b.trees[commit], err = b.complete(ctx, c.Tree)
	return b.trees[commit], err
}

// patch has git format-patch and git am make the tree of a commit as well, if the request wants that, and stops
// where they come to another one. A mail can carry neither a merge nor an empty commit.
func (b *builder) patch(ctx context.Context, l gitops.Link, theirs gitops.OID, parents []gitops.OID, want gitops.OID) error {
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
	var refused *gitops.RefusedPatch
	switch {
	case errors.As(err, &refused):
		b.refused = fmt.Sprintf("git am does not take commit %.12s: %s", l.Commit, refused.Said)
	case err != nil:
		return err
	case tree != want:
		b.refused = fmt.Sprintf("git am makes another tree of commit %.12s than its own", l.Commit)
	}
	if b.refused != "" {
		b.stopped = []string{}
	}
	return nil
}
