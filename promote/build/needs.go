package build

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// checkNeeds stops the building at a commit that conflicts or changes nothing because the branch lacks commits that were left out when other
// commits landed. The walk of a plan does not find each such commit: the inner trees that it uses can have the changes of the commits left out.
func (b *builder) checkNeeds(ctx context.Context, l quarantine.Link, c gitops.Commit, theirs, tree gitops.OID, parents []gitops.OID) error {
	if len(parents) == 0 || b.stopped != nil && b.stopped.partly {
		return nil // a root commit needs nothing
	}
	if b.stopped == nil {
		if err := b.checkOwn(ctx, l, c, parents[0]); err != nil || b.stopped != nil {
			return err
		}
	}
	if len(b.plan.Ledger.LeftOut()) == 0 || b.stopped == nil && len(parents) > 1 {
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
	without, conflicts, err := b.request.Trees.withoutChanges(ctx, base, left)
	if err != nil {
		return err
	}
	if conflicts == nil {
		if tree, conflicts, err = b.mergeOn(ctx, quarantine.Merge{Base: base, Ours: without, Theirs: theirs, NoDirectoryRenames: true}); err != nil {
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

// checkOwn stops the building at a commit whose own change conflicts with the branch, although it is clean between the trees of the plan. Those
// lack the changes of the user, and have those of commits that were left out when others landed: if such a commit removed a file, and one that is
// left out now adds the file again, the removal by a third one changes nothing there.
func (b *builder) checkOwn(ctx context.Context, l quarantine.Link, c gitops.Commit, onto gitops.OID) error {
	if len(l.Parents) != 1 || b.copied != "" || l.Commit == b.plan.Chain[0] && len(b.plan.Supersedes)+len(b.plan.Lost) > 0 {
		return nil
	}
	ours, err := b.treeOf(ctx, onto)
	if err != nil {
		return err
	}
	if tree, differs := b.plan.Tree(l.Parents[0]); !differs || tree == ours {
		return nil // that merge was the one of the commit's own change
	}
	m, err := b.request.Trees.Change(ctx, l.Parents[0], l.Commit)
	if err != nil {
		return err
	}
	m.Ours, m.NoDirectoryRenames, m.Change = ours, true, m.Theirs
	_, conflicts, err := b.mergeOn(ctx, m)
	if conflicts != nil {
		b.stopped = &Conflict{Commit: l.Commit, Paths: conflicts, Crash: b.crash, Lacking: &ledger.Dropped{Commit: l.Commit, Subject: c.Subject()}}
	}
	return err
}

// onBranch returns the tree of the last landed inner commit, changed to what the branch has of it: without the changes that only the inner tree
// has (see [builder.withoutAgain] and [history.Plan.Off]), and with those of [history.Plan.OnTop].
func (b *builder) onBranch(ctx context.Context, commit, tree gitops.OID) (gitops.OID, error) {
	tree, err := b.withoutAgain(ctx, commit, tree)
	if err == nil && b.stopped == nil && len(b.plan.Off) > 0 {
		without, conflicts, err := b.request.Trees.withoutChanges(ctx, tree, b.plan.Off)
		if err != nil || conflicts != nil {
			return tree, err // with conflicts, the commit counts from what it was made on
		}
		tree = without
	}
	for _, id := range b.plan.OnTop {
		if err != nil || b.stopped != nil {
			break
		}
		var c gitops.Commit
		if c, err = b.request.Inside.Commit(ctx, id); err == nil && !b.landedRoot(ctx, id) {
			tree, err = b.pick(ctx, commit, quarantine.Link{Commit: id, Parents: c.Parents}, tree)
		}
	}
	return tree, err
}

// landedRoot reports whether a landed commit is a root commit on the branch, too. It has no change of its own: the merge that brought it has
// its files.
func (b *builder) landedRoot(ctx context.Context, inner gitops.OID) bool {
	p, _ := b.plan.Ledger.Image(inner)
	outer, err := b.request.Across.Commit(ctx, p.Outer)
	return err == nil && len(outer.Parents) == 0
}

// pick returns a tree with the change of the inner commit l. If the two conflict, it stops the building at the commit of.
func (b *builder) pick(ctx context.Context, of gitops.OID, l quarantine.Link, tree gitops.OID) (gitops.OID, error) {
	m, err := b.request.Trees.Change(ctx, b.parentOf(l), l.Commit)
	if err != nil {
		return "", err
	}
	picked, conflicts, err := b.request.Trees.Merge(ctx, m.Base, tree, m.Theirs)
	if conflicts != nil {
		b.stopped = &Conflict{Commit: of, Paths: conflicts}
	}
	if err != nil || conflicts != nil {
		return tree, err
	}
	return picked, nil
}

// parentOf returns the first parent of an inner commit, or the airlock's root.
func (b *builder) parentOf(l quarantine.Link) gitops.OID {
	if len(l.Parents) == 0 {
		return b.plan.Ledger.Base.Inner
	}
	return l.Parents[0]
}

// withoutAgain returns the tree of the last landed inner commit without the changes of [history.Plan.Again], or base if that list is empty. If
// the first new commit undoes the last landed one, its changes count from this tree. withoutAgain picks the other changes one by one, as the
// landings did, so that the merges are as clean as theirs. If a merge conflicts, it stops the building.
func (b *builder) withoutAgain(ctx context.Context, commit, base gitops.OID) (gitops.OID, error) {
	line, err := b.lineSinceAgain(ctx)
	for i, l := range line {
		if err == nil && i == 0 {
			base, err = b.request.Trees.Tree(ctx, b.parentOf(l))
		}
		if err == nil && b.stopped == nil && !slices.Contains(b.plan.Again, l.Commit) {
			base, err = b.pick(ctx, commit, l, base)
		}
	}
	return base, err
}

// lineSinceAgain returns the first-parent history of the last landed inner commit, from the oldest commit of Again on.
func (b *builder) lineSinceAgain(ctx context.Context) ([]quarantine.Link, error) {
	var line []quarantine.Link // newest first
	oldest, root := 0, b.plan.Ledger.Base.Inner
	for id := b.plan.Last.Inner; len(b.plan.Again) > 0 && id != root && !b.plan.Brought[id]; {
		c, err := b.request.Inside.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		line = append(line, quarantine.Link{Commit: id, Parents: c.Parents})
		if slices.Contains(b.plan.Again, id) {
			oldest = len(line)
		}
		if id = root; len(c.Parents) > 0 {
			id = c.Parents[0]
		}
	}
	line = line[:oldest]
	slices.Reverse(line)
	return line, nil
}

// leftOutBefore returns the commits that a commit follows, that were left out when other commits landed, and that are not built yet, oldest first. Those
// that the plan's trees lack are not among them: the walk has found what needs them.
func (b *builder) leftOutBefore(ctx context.Context, commit gitops.OID) ([]gitops.OID, error) {
	left := gitops.SetOf(b.plan.Ledger.LeftOut()...)
	return b.request.Trees.before(ctx, commit, func(id gitops.OID) bool { return left[id] && b.placed[id] == "" && !b.plan.TakenOut(id) })
}
