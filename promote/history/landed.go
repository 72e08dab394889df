package history

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// seedLanded computes the tree of the landed commit before the new ones, without the changes that the branch lacks. The changes of the new commits
// count from it: one of them that takes such a change back is left out, and a newer one may make the change again. If the changes cannot be
// taken out, the landed commit keeps its tree. The changes of commits before the newest mostWalked ones are not taken out.
func (p *Plan) seedLanded(ctx context.Context, w *walked, t Trees) error {
	lacks := gitops.SetOf(w.absent[p.found]...)
	if len(lacks) == 0 || p.Since != p.found || p.Fork != "" || len(p.Supersedes) > 0 && !p.lined {
		return nil
	}
	r := &recalled{Trees: t}
	err := p.takeOut(ctx, w, lacks, r)
	if err == nil {
		err = p.restore(ctx, w, r)
	}
	if errors.Is(err, errOther) {
		clear(w.trees)
		clear(w.left)
		clear(w.blocked)
		w.taken = nil
		err = p.takeOut(ctx, w, lacks, t)
	}
	return err
}

// takeOut computes the trees of Line for seedLanded.
func (p *Plan) takeOut(ctx context.Context, w *walked, lacks gitops.Set[gitops.OID], t Trees) error {
	line := p.Line[max(0, len(p.Line)-mostWalked):]
	for _, l := range line {
		err := p.step(ctx, w, l, lacks[l.Commit], t)
		if err == nil && len(l.Parents) == 0 && lacks[l.Commit] { // its change counts from the airlock's root
			w.trees[l.Commit], err = t.Tree(ctx, p.Ledger.Base.Inner)
		}
		if err != nil {
			return err
		}
		if !w.left[l.Commit] {
			continue
		}
		delete(w.left, l.Commit)
		delete(w.blocked, l.Commit)
		if !slices.Contains(p.Absent[p.found], l.Commit) { // one of those may land now, but needs another one
			delete(w.trees, l.Commit)
			return nil
		}
	}
	w.taken = gitops.Set[gitops.OID]{}
	for _, l := range line {
		if lacks[l.Commit] {
			w.taken.Add(l.Commit)
		}
	}
	return nil
}

// restore makes the trees of landed commits that the walk and the building read: those of the parents of commits that have not landed.
func (p *Plan) restore(ctx context.Context, w *walked, r *recalled) error {
	reads := []gitops.OID{p.found, p.Last.Inner}
	for _, l := range p.Links {
		reads = append(reads, l.Parents...)
	}
	if slices.ContainsFunc(p.Links, p.begins) {
		for _, a := range p.Earlier {
			reads = append(reads, a.Parents...)
		}
	}
	for _, id := range reads {
		if tree, differs := w.trees[id]; differs {
			if err := r.restore(ctx, tree, len(r.merges)); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins reports whether a commit begins at one that was left out.
func (p *Plan) begins(l quarantine.Link) bool { return slices.ContainsFunc(l.Parents, p.leftOut) }

// recalled takes the results of merges from earlier cycles. Each cycle needs the merges of all landed commits since the oldest one that the branch
// lacks, but it reads few of their trees, and no store keeps those. A tree can be read after restore.
type recalled struct {
	Trees
	merges []recalledMerge // oldest first
	failed int
}

type recalledMerge struct{ base, ours, theirs, tree gitops.OID }

// mostFailed bounds the merges of several landed commits at once that give another tree.
const mostFailed = 10

// errOther reports that a merge gives another tree than in an earlier cycle, as it may after an update of git.
var errOther = errors.New("another tree than in an earlier cycle")

// Merge implements [Trees]. The tree of the result may be in no store.
func (r *recalled) Merge(ctx context.Context, base, ours, theirs gitops.OID) (tree gitops.OID, conflicts []string, err error) {
	tree, conflicts, known := r.Made(base, ours, theirs)
	if !known {
		if err = r.restore(ctx, ours, len(r.merges)); err == nil {
			tree, conflicts, err = r.Trees.Merge(ctx, base, ours, theirs)
		}
	}
	if err == nil && conflicts == nil {
		r.merges = append(r.merges, recalledMerge{base, ours, theirs, tree})
	}
	return tree, conflicts, err
}

// restore makes a tree that is in no store any more: a result of one of the first merges. Most often, one merge gives the same tree as those of
// many commits, one after the other. The name of the tree shows whether it does.
func (r *recalled) restore(ctx context.Context, tree gitops.OID, merges int) error {
	if r.Has(ctx, tree) {
		return nil
	}
	last := merges - 1
	for last >= 0 && r.merges[last].tree != tree {
		last--
	}
	if last < 0 {
		return errOther
	}
	first := last
	for first > 0 && r.follows(first) && !r.Has(ctx, r.merges[first].ours) {
		first--
	}
	if err := r.restore(ctx, r.merges[first].ours, first); err != nil {
		return err
	}
	return r.remake(ctx, first, last)
}

// follows reports whether a merge is of the commit after the one of the merge before, and goes on from its result.
func (r *recalled) follows(i int) bool {
	before, m := r.merges[i-1], r.merges[i]
	return before.theirs == m.base && before.tree == m.ours
}

// remake makes the result of the last one of some merges, each of which follows the one before. It halves them as long as one merge gives another
// tree.
func (r *recalled) remake(ctx context.Context, first, last int) error {
	if first == last || r.failed < mostFailed {
		from, to := r.merges[first], r.merges[last]
		tree, _, err := r.Trees.Merge(ctx, from.base, from.ours, to.theirs)
		if err != nil || tree == to.tree {
			return err
		}
		if r.failed++; first == last {
			return errOther
		}
	}
	middle := (first + last) / 2
	if err := r.remake(ctx, first, middle); err != nil {
		return err
	}
	return r.remake(ctx, middle+1, last)
}
