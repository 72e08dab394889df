package history

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Part is a part of the change of a lost commit: the change from one tree to the other.
type Part struct{ Base, Theirs gitops.OID }

// mostShared bounds the merges by which a plan compares the lost commits with other lines. Those that are not compared stay on the branch.
const mostShared = 500

// mostTakenOut bounds the commits whose changes are taken out of the tree of a line.
const mostTakenOut = 100

// KeepShared finds the lost commits whose changes another line has landed, too, for example with a squash or a cherry-pick. They stay on the
// branch: the new commits do not count from them. Of a change that another line has in part, that part stays, see [Plan.Shared]. If the lines change
// the same lines of a file in different ways, the whole change stays, so that a new commit that removes it conflicts.
func (p *Plan) KeepShared(ctx context.Context, t Trees) error {
	if p.compared || len(p.lost) == 0 || len(p.Chain) == 0 {
		return nil
	}
	p.compared = true
	c := comparison{Plan: p, trees: t, shared: gitops.Set[gitops.OID]{}}
	for _, tip := range p.standing() {
		if err := c.compare(ctx, tip); err != nil {
			return err
		}
	}
	if len(c.shared) == 0 {
		return nil
	}
	p.lost = slices.DeleteFunc(p.lost, func(id gitops.OID) bool { return c.shared[id] })
	return p.count(ctx)
}

// standing returns the newest landed commit of each other line, and the tip of main. The commits that main has lost are not among them.
func (p *Plan) standing() (tips []gitops.OID) {
	seen := gitops.SetOf(p.From)
	for _, l := range slices.Backward(p.Ledger.Landed) {
		line, out := l.From, l.Aside
		if !l.OffMain() {
			seen[line] = seen[line] || line != "" // what else is of that line is older
			line, out = "", l.Aside || p.gone[l.Inner] || p.Ledger.Superseded(l.Outer)
		}
		if !out && !seen[line] {
			seen[line], tips = true, append(tips, l.Inner)
		}
	}
	if p.From != "" && p.Main != "" && !slices.Contains(tips, p.Main) {
		tips = append(tips, p.Main)
	}
	return tips
}

// comparison compares the lost commits of a plan with other lines.
type comparison struct {
	*Plan
	trees  Trees
	shared gitops.Set[gitops.OID]
	merges int
}

// merge makes a merge. The tree is empty if there is a conflict.
func (c *comparison) merge(ctx context.Context, base, ours, theirs gitops.OID) (gitops.OID, error) {
	switch {
	case base == theirs:
		return ours, nil
	case base == ours || ours == theirs:
		return theirs, nil
	}
	c.merges++
	tree, conflicts, err := c.trees.Merge(ctx, base, ours, theirs)
	if conflicts != nil {
		tree = ""
	}
	return tree, err
}

// change returns the trees before and after a commit. They are the same for a root commit, which has no change of its own: the merge that brought it
// has its files.
func (c *comparison) change(ctx context.Context, commit gitops.OID) (before, after gitops.OID, err error) {
	parent, err := c.trees.Parent(ctx, commit)
	if err == nil {
		after, err = c.trees.Tree(ctx, commit)
	}
	if before = after; err == nil && parent != "" {
		before, err = c.trees.Tree(ctx, parent)
	}
	return before, after, err
}

// compare finds the lost commits whose changes are in the tree of another line's newest landed commit.
func (c *comparison) compare(ctx context.Context, tip gitops.OID) error {
	whole, err := c.trees.Tree(ctx, tip)
	own := gitops.OID("") // whole, without the changes that are not the line's
	var run []gitops.OID
	for i, id := range c.lost {
		if err != nil {
			return err
		}
		if c.shared[id] {
			continue
		}
		run = append(run, id)
		if i+1 < len(c.lost) && !c.shared[c.lost[i+1]] {
			parent, err := c.trees.Parent(ctx, c.lost[i+1])
			if err != nil {
				return err
			}
			if parent == id {
				continue
			}
		}
		var all, none bool
		if all, none, err = c.hasAll(ctx, whole, run); err == nil && !none && own == "" {
			own, err = c.ownTree(ctx, tip, whole)
		}
		if err == nil && !none && own != whole {
			all, none, err = c.hasAll(ctx, own, run)
		}
		switch {
		case err != nil || none:
		case all:
			c.shared.Add(run...)
		default:
			err = c.compareEach(ctx, own, run)
		}
		run = nil
	}
	return err
}

// hasAll reports whether a tree has all changes of commits that follow each other, or none of them.
func (c *comparison) hasAll(ctx context.Context, tree gitops.OID, run []gitops.OID) (all, none bool, err error) {
	before, _, err := c.change(ctx, run[0])
	if err != nil {
		return false, false, err
	}
	_, after, err := c.change(ctx, run[len(run)-1])
	if err != nil || before == after {
		return false, err == nil, err
	}
	with, err := c.merge(ctx, before, tree, after)
	if err != nil || with == "" || with == tree {
		return with == tree && err == nil, false, err
	}
	rest, err := c.merge(ctx, tree, before, with)
	return false, rest == after, err
}

// compareEach compares commits that follow each other with a tree, one by one. The tree may have a commit's change as a later one has left it.
func (c *comparison) compareEach(ctx context.Context, tree gitops.OID, run []gitops.OID) error {
	for i := 0; i < len(run); i++ {
		id := run[i]
		before, after, err := c.change(ctx, id)
		if err != nil {
			return err
		}
		if before == after {
			continue
		}
		with, rest := gitops.OID(""), gitops.OID("")
		if c.merges < mostShared {
			if with, err = c.merge(ctx, before, tree, after); err == nil && with != "" && with != tree {
				rest, err = c.merge(ctx, tree, before, with)
			}
		}
		switch {
		case err != nil:
			return err
		case rest == "" || with == tree:
			last := i
			if with == "" {
				if last, err = c.until(ctx, tree, run, i); err != nil {
					return err
				}
			}
			c.shared.Add(run[i : last+1]...)
			i = last
			continue
		case rest != after:
			c.Shared = append(c.Shared, Part{rest, after})
		}
		tree = with
	}
	return nil
}

// until returns the position of the newest commit up to which a tree has the change of some commits together, or first if there is none.
func (c *comparison) until(ctx context.Context, tree gitops.OID, run []gitops.OID, first int) (int, error) {
	before, _, err := c.change(ctx, run[first])
	for last := len(run) - 1; err == nil && last > first && c.merges < mostShared; last-- {
		var after, with gitops.OID
		if _, after, err = c.change(ctx, run[last]); err == nil {
			with, err = c.merge(ctx, before, tree, after)
		}
		if err == nil && with == tree {
			return last, nil
		}
	}
	return first, err
}

// ownTree returns the tree of a line's landed commit without the changes that the line has, but has not landed itself: those of synced commits, those that
// were left out, and those that main has undone or lost. A change that cannot be taken out stays.
func (c *comparison) ownTree(ctx context.Context, tip, tree gitops.OID) (gitops.OID, error) {
	takes := map[gitops.OID]gitops.OID{} // commits of the line, and those whose changes they have
	for _, id := range append(ledger.Inners(c.Ledger.Synced), c.Ledger.LeftOut()...) {
		takes[id] = id
	}
	lost := gitops.SetOf(c.lost...)
	for _, l := range c.Ledger.Landed {
		switch {
		case l.Copy != "":
			takes[l.Inner] = l.Copy
		case c.Ledger.Superseded(l.Outer) && !c.broughtBack(l, tip), !c.Ledger.Superseded(l.Outer) && !l.OffMain() && lost[l.Inner]:
			takes[l.Inner] = l.Inner
		}
	}
	if len(takes) == 0 {
		return tree, nil
	}
	reached, err := c.inner.Unreached(ctx, []gitops.OID{tip}, []gitops.OID{c.Ledger.Base.Inner})
	if err != nil {
		return "", err
	}
	reached = slices.DeleteFunc(reached, func(id gitops.OID) bool { return takes[id] == "" })
	for _, id := range reached[:min(len(reached), mostTakenOut)] { // children before parents
		before, after, err := c.change(ctx, takes[id])
		if err != nil {
			return "", err
		}
		without, err := c.merge(ctx, after, tree, before)
		if err != nil {
			return "", err
		}
		if without != "" {
			tree = without
		}
	}
	return tree, nil
}
