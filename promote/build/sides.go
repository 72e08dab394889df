package build

import (
	"cmp"
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// moveSide gives a side branch of the agent another commit to begin at. links are commits in the order of building, of which the last one
// conflicts. Usually its side branch begins at the image of a landed commit. That image lacks the commits that were left out before it, also if
// one of them is on the branch by now, or is built. moveSide returns the position of the side branch's first commit, at which the building has to
// go on, or -1 if there is no other commit to begin at.
func (b *builder) moveSide(ctx context.Context, links []quarantine.Link) (int, error) {
	first := firstOfSide(links)
	l := links[first]
	if len(l.Parents) == 0 || len(b.plan.Chain) > 0 && l.Commit == b.plan.Chain[0] {
		return -1, nil
	}
	begin, err := b.newestLeftOut(ctx, l)
	if err != nil || begin == "" || begin == b.begins[l.Commit] {
		return -1, err
	}
	b.begins[l.Commit] = begin
	again := gitops.SetOf(quarantine.Commits(links[first:])...)
	for i, f := range b.fresh {
		if again[f.Inner] {
			b.takeBack(i)
			break
		}
	}
	b.stopped = nil
	return first, nil
}

// firstOfSide returns the position of the oldest commit in the first-parent history of the last one.
func firstOfSide(links []quarantine.Link) int {
	first := len(links) - 1
	for i := first; i >= 0; i-- { // children before parents
		if parents := links[first].Parents; i < first && len(parents) > 0 && parents[0] == links[i].Commit {
			first = i
		}
	}
	return first
}

// newestLeftOut returns the newest outer commit of those that a commit follows inside, that its first parent landed without, and that are on the
// branch now or are built. The outer commit also follows the image of that parent. It is empty if there is none.
func (b *builder) newestLeftOut(ctx context.Context, l quarantine.Link) (gitops.OID, error) {
	parent, landed := b.plan.Ledger.Image(l.Parents[0])
	if _, built := b.done[l.Parents[0]]; built || !landed || parent.Synced || b.request.Trees.followed > mostFollowed {
		return "", nil
	}
	order := map[gitops.OID]int{}
	for i, p := range b.plan.Ledger.Landed {
		order[p.Outer] = i + 1
	}
	later := map[gitops.OID]int{} // landed after the parent
	before, err := b.request.Trees.before(ctx, l.Commit, func(id gitops.OID) bool {
		if p, there := b.plan.Ledger.Image(id); there && order[p.Outer] > order[parent.Outer] {
			later[cmp.Or(b.replaced[id], p.Outer)] = order[p.Outer]
		}
		return b.placed[id] != ""
	})
	if err != nil || len(before)+len(later) == 0 {
		return "", err
	}
	begin, _ := b.image(l.Parents[0])
	outers := []gitops.OID{begin.Outer}
	for outer := range later {
		outers = append(outers, outer)
	}
	there, err := b.request.reached(ctx, outers, b.onto)
	if err != nil || begin.Outer != b.on && !there[begin.Outer] {
		return "", err
	}
	if onTop := b.newestOnTop(before); onTop != "" || begin.Outer == b.on {
		return onTop, nil
	}
	newest := gitops.OID("")
	for outer, at := range later {
		if there[outer] && at > later[newest] {
			newest = outer
		}
	}
	if newest == "" || !b.request.Repo.IsAncestor(ctx, begin.Outer, newest) {
		return "", nil
	}
	b.outside[newest] = true
	return newest, nil
}

// newestOnTop returns the newest outer commit of those inner ones that are built on top of each other and of the commit to build on. It is empty if
// there is none.
func (b *builder) newestOnTop(inner []gitops.OID) (newest gitops.OID) {
	wanted := gitops.SetOf(inner...)
	for _, a := range b.plan.Aside {
		if a.Side {
			delete(wanted, a.Commit)
		}
	}
	for _, f := range b.fresh {
		if wanted[f.Inner] {
			newest = f.Outer
		}
	}
	return newest
}
