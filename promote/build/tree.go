package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/words"
)

// tree returns the tree of an outer commit: the three-way merge of the agent's changes since the first parent with
// the tree of the first parent's image.
func (b *builder) tree(ctx context.Context, l quarantine.Link, theirs gitops.OID, parents []gitops.OID) (gitops.OID, error) {
	first := b.diffBase(l)
	if first == "" || b.copied == "" && b.equal(first, parents[0]) && len(b.plan.Merged(l.Commit).On) == 0 {
		return theirs, nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil || b.stopped != nil {
		return "", err
	}
	ours, err := b.treeOf(ctx, parents[0])
	switch {
	case err != nil:
		return "", err
	case ours == base || ours == theirs && b.how != wholeOnly:
		return theirs, nil
	case base == theirs:
		return ours, nil
	}
	b.merging = true
	m := quarantine.Merge{Base: base, Ours: ours, Theirs: theirs}
	if m.Change, err = b.request.Trees.Tree(ctx, l.Commit); err != nil {
		return "", err
	}
	tree, err := b.mergeOrStop(ctx, l.Commit, m)
	if err != nil || b.stopped != nil {
		return tree, err
	}
	paths, err := b.checkPart(ctx, m, tree)
	if paths != nil {
		b.stopped = &Conflict{Commit: l.Commit, Paths: paths, partly: true}
	}
	return tree, err
}

// mergeOrStop merges trees for a commit, and stops the building if they conflict.
func (b *builder) mergeOrStop(ctx context.Context, commit gitops.OID, m quarantine.Merge) (gitops.OID, error) {
	tree, conflicts, err := b.mergeOn(ctx, m)
	if conflicts != nil && b.how == theirsFirst {
		if tree, err = b.overrule(ctx, commit, m); tree != "" && err == nil {
			err = b.setLacks(ctx, m, tree)
		}
	}
	if conflicts != nil && tree == "" {
		b.stopped = &Conflict{Commit: commit, Paths: conflicts, Crash: b.crash}
	}
	return tree, err
}

// overrule merges trees that conflict, and takes the agent's lines. The tree is empty if the commit needs commits that were left out, or would bring
// their changes.
func (b *builder) overrule(ctx context.Context, commit gitops.OID, m quarantine.Merge) (gitops.OID, error) {
	if b.crash != nil {
		return "", nil
	}
	left := gitops.SetOf(b.plan.Ledger.LeftOut()...)
	out := func(id gitops.OID) bool { return (left[id] || b.plan.Drops(id)) && b.placed[id] == "" }
	needs, err := b.request.Trees.Needs(ctx, commit, out)
	if err != nil || needs {
		return "", err
	}
	tree, byLines, err := b.request.Bridge.MergeTheirs(ctx, b.request.Across, m)
	if err != nil && !gitops.Crashed(err) && b.request.Fetch(ctx) {
		tree, byLines, err = b.request.Bridge.MergeTheirs(ctx, b.request.Across, m)
	}
	if gitops.Crashed(err) {
		b.crash = err
		return "", nil
	}
	if err != nil || byLines {
		return tree, err
	}
	if before, err := b.request.Trees.before(ctx, commit, out); err != nil || len(before) > 0 {
		return "", err
	}
	return tree, nil
}

// mergeOn merges trees, of which ours is the user's. It fetches objects that a partial clone lacks. If git crashes or has not enough time, mergeOn
// returns a conflict without paths and sets crash: other commits may land, and the user must decide about this one.
func (b *builder) mergeOn(ctx context.Context, m quarantine.Merge) (gitops.OID, []string, error) {
	tree, conflicts, err := b.request.Bridge.Merge(ctx, m)
	if err != nil && !gitops.Crashed(err) && b.request.Fetch(ctx) {
		tree, conflicts, err = b.request.Bridge.Merge(ctx, m)
	}
	if b.crash = nil; gitops.Crashed(err) {
		b.crash = err
		return "", []string{}, nil
	}
	return tree, conflicts, err
}

// diffBase returns the inner commit from which a commit's changes count: its first parent, or, for the first commit to
// land, the commit that landed last. It returns empty for a root commit that was merged in.
func (b *builder) diffBase(l quarantine.Link) gitops.OID {
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

// baseTree returns the tree from which the changes of a commit count: the tree of the commit before it. If the commit goes back to a history
// older than landed commits, baseTree merges that tree with the agent's later landed changes, and leaves out the changes that those commits
// lack on the branch and that land now.
func (b *builder) baseTree(ctx context.Context, l quarantine.Link) (gitops.OID, error) {
	base, err := b.innerTree(ctx, b.diffBase(l))
	if err == nil && l.Commit == b.plan.Chain[0] && b.plan.Fork == "" {
		base, err = b.onBranch(ctx, l.Commit, base)
	}
	if err == nil && b.stopped == nil {
		base, err = b.withMerged(ctx, l.Commit, base)
	}
	if err == nil && b.copied != "" && (l.Commit != b.plan.Chain[0] || !b.lost(b.copied)) {
		return b.withSynced(ctx, base, b.copied)
	}
	if err != nil || b.plan.Fork == "" || l.Commit != b.plan.Chain[0] {
		return base, err
	}
	fork, err := b.innerTree(ctx, b.plan.Fork)
	if err != nil {
		return "", err
	}
	landed, err := b.innerTree(ctx, b.plan.Last.Inner)
	if err == nil {
		landed, err = b.onBranch(ctx, l.Commit, landed)
	}
	if err != nil {
		return "", err
	}
	tree, conflicts, err := b.mergeOn(ctx, quarantine.Merge{Base: fork, Ours: base, Theirs: landed, NoDirectoryRenames: true})
	if conflicts != nil {
		return landed, err
	}
	return tree, err
}

// withMerged returns a tree with the changes that a merge brings and that the branch has, see [history.Plan.Merged], or the tree as it is if these
// conflict. In the second case, the merge has resolved the conflict.
func (b *builder) withMerged(ctx context.Context, merge, tree gitops.OID) (gitops.OID, error) {
	with, brought := tree, b.plan.Merged(merge)
	for _, id := range brought.On {
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return "", err
		}
		if b.landedRoot(ctx, id) {
			continue
		}
		m, err := b.request.Trees.Change(ctx, b.parentOf(quarantine.Link{Commit: id, Parents: c.Parents}), id)
		if err != nil {
			return "", err
		}
		var conflicts []string
		if with, conflicts, err = b.request.Trees.Merge(ctx, m.Base, with, m.Theirs); err != nil || conflicts != nil {
			return tree, err
		}
	}
	// A merge among those of On has changes of Off, and a synced commit before this merge can have them, too.
	without, conflicts, err := b.request.Trees.withoutChanges(ctx, with, brought.Off)
	if err != nil || conflicts != nil {
		return with, err
	}
	return without, nil
}

// innerTree returns the tree of an inner commit, including the files that the snapshot left out, and without the
// changes of commits that are left out before it.
func (b *builder) innerTree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := b.trees[commit]; ok {
		return tree, nil
	}
	if tree, differs := b.plan.Tree(commit); differs {
		return tree, nil
	}
	return b.request.Trees.Tree(ctx, commit)
}

// patch checks, if the request asks for it, that git format-patch and git am make the same tree of a commit, and
// stops the building otherwise. A mail can carry neither a merge nor an empty commit.
func (b *builder) patch(ctx context.Context, l quarantine.Link, theirs gitops.OID, parents []gitops.OID, want gitops.OID) error {
	if !b.request.ByPatch || b.how == theirsFirst || len(parents) != 1 {
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
	m := quarantine.Merge{Base: base, Ours: ours, Theirs: theirs}
	if m.Change, err = b.request.Trees.Tree(ctx, l.Commit); err != nil {
		return err
	}
	refused, err := b.refusal(ctx, l.Commit, m, want)
	if refused != "" {
		b.stopped = &Conflict{Commit: l.Commit, Paths: []string{}, Refused: refused}
	}
	return err
}

// refusal lets the patch engine apply a commit's change from base to theirs. It returns the engine's message if the result is not the tree want,
// and empty otherwise.
func (b *builder) refusal(ctx context.Context, commit gitops.OID, m quarantine.Merge, want gitops.OID) (string, error) {
	tree, err := b.request.Bridge.Patch(ctx, m)
	var refused *quarantine.RefusedPatch
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("git am does not apply commit %.12s: %s", commit, refused.Said), nil
	case gitops.Crashed(err):
		return fmt.Sprintf("git am does not apply commit %.12s: %s", commit, words.OneLine(err)), nil
	case err != nil:
		return "", err
	case tree != want:
		return fmt.Sprintf("git am makes a tree for commit %.12s that differs from its own", commit), nil
	}
	return "", nil
}
