package build

import (
	"context"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// withAside builds the commits of a plan that has set some commits aside: first those that come before the chain, then the chain, and on top of
// it the other commits that were set aside.
func (r Request) withAside(ctx context.Context, tail []ledger.Pair) (Built, error) {
	place := Place{Onto: r.Onto, Aside: r.Plan.Held()}
	same := r.Before.Onto == r.Onto && !r.Again && (slices.Equal(r.Before.Aside, place.Aside) || r.ordered(tail))
	first := 0
	for first < len(tail) && r.isFirst(tail[first]) {
		first++
	}
	end := first
	for end < len(tail) && r.position(tail[end].Inner) < 0 {
		end++
	}
	before := slices.ContainsFunc(r.Plan.Aside, func(a history.Aside) bool { return a.First && !a.Side && r.isNew(a, tail) })
	keeps := same && !before && (end == first || r.Plan.Keeps(tail[first:end]))
	if keeps && len(tail) > 0 && len(r.Plan.After(tail)) == 0 && r.covered(slices.Concat(tail[:first], tail[end:])) {
		place.Apart, place.Unbuilt = r.Before.Apart, r.Before.Unbuilt
		return Built{Place: place, Pending: tail, Same: len(r.Before.Unbuilt) > 0}, nil
	}
	if tail = tail[:end]; !keeps || r.Before.Apart {
		tail = nil
	}
	built := Built{Place: place, Pending: tail}
	b, err := r.build(ctx, r.Plan.After(tail), tail, r.Onto, inPortions)
	if err == nil && b.conflicts() {
		b.stopped.Behind = true // nothing is built apart while there are commits to build on the branch
	}
	if err != nil || b.stopped != nil || b.late {
		return b.result(built), err
	}
	on := r.Onto
	for _, t := range slices.Concat(tail, pairs(b.fresh)) {
		on = t.Outer
	}
	unbuilt, err := b.aside(ctx, on)
	if err != nil {
		return built, err
	}
	if len(b.fresh) == 0 && len(tail) == 0 && len(unbuilt) > 0 && unbuilt[0].Lacking == nil {
		return r.asideApart(ctx, built, unbuilt)
	}
	return b.result(built.with(unbuilt, true)), nil
}

// ordered reports whether the pending commits are in the order in which they would be built now.
func (r Request) ordered(tail []ledger.Pair) bool {
	at := map[gitops.OID]int{}
	for i, a := range r.Plan.Aside {
		switch at[a.Commit] = i + 1; { // commits of the chain have 0
		case a.First:
			at[a.Commit] -= len(r.Plan.Aside) + 1
		case a.Held:
			at[a.Commit] += len(r.Plan.Aside)
		}
	}
	return slices.IsSortedFunc(tail, func(a, b ledger.Pair) int { return at[a.Inner] - at[b.Inner] })
}

// position returns the position of a commit in the list of those that were set aside, or -1.
func (r Request) position(id gitops.OID) int {
	return slices.IndexFunc(r.Plan.Aside, func(a history.Aside) bool { return a.Commit == id })
}

// isFirst reports whether a pending commit was set aside and comes before the chain.
func (r Request) isFirst(t ledger.Pair) bool {
	i := r.position(t.Inner)
	return i >= 0 && r.Plan.Aside[i].First
}

// covered reports whether each commit that was set aside is among the given pending ones, or is one that the last cycle could not build, and
// whether all of these are still set aside.
func (r Request) covered(pending []ledger.Pair) bool {
	if slices.ContainsFunc(slices.Concat(r.Before.Unbuilt, ledger.Inners(pending)), func(id gitops.OID) bool { return r.position(id) < 0 }) {
		return false
	}
	return !slices.ContainsFunc(r.Plan.Aside, func(a history.Aside) bool { return r.isNew(a, pending) })
}

// isNew reports whether a commit that was set aside is not among the given pending ones, and the last cycle did not try to build it.
func (r Request) isNew(a history.Aside, pending []ledger.Pair) bool {
	return !slices.Contains(r.Before.Unbuilt, a.Commit) && !slices.ContainsFunc(pending, func(t ledger.Pair) bool { return t.Inner == a.Commit })
}

// asideApart builds the commits that were set aside without the user's commits, because the two conflict.
func (r Request) asideApart(ctx context.Context, built Built, unbuilt []Conflict) (Built, error) {
	remote := ""
	b, err := r.asideOnPlace(ctx, unbuilt[0])
	oldest := slices.IndexFunc(r.Plan.Aside, func(a history.Aside) bool { return !a.Side }) // unbuilt has no others
	if err == nil && b == nil && r.Plan.Aside[oldest].Commit == unbuilt[0].Commit {
		var onto gitops.OID
		if onto, err = r.apart(ctx); err == nil {
			if b, _, err = r.asideOn(ctx, onto, merged, unbuilt[0].Commit, unbuilt[0].Commit); r.unreadable(ctx, err) {
				b, err, remote = nil, nil, r.promisor(ctx)
			}
		}
	}
	if err != nil {
		return built, err
	}
	built = built.with(unbuilt, b == nil)
	if b == nil {
		built.Stopped[0].Remote = remote
		return built, nil
	}
	built.Apart, built.Off = true, r.isOff(ctx, b.onto) || b.apart != "" && r.isOff(ctx, r.Plan.Last.Outer)
	built.Stopped[0].Lacks = b.lacks
	built.Stopped[0].Gone = b.onto == r.Plan.Last.Outer && r.onlyTakenOff(ctx)
	return b.result(built), nil
}

// asideOnPlace builds the commits that were set aside on an older commit of the branch, or on landed ones that the user has only taken off the
// branch. It returns nil if the first of them conflicts on all of these. first is its conflict with the branch's tip.
func (r Request) asideOnPlace(ctx context.Context, first Conflict) (*builder, error) {
	try := func(onto gitops.OID, how treatment) (*builder, *Conflict, error) {
		return r.asideOn(ctx, onto, how, first.Commit, "")
	}
	b, err := r.tryPlaces(ctx, first, try)
	if b == nil && err == nil && r.onlyTakenOff(ctx) {
		b, _, err = try(r.Plan.Last.Outer, merged)
	}
	return b, err
}

// asideOn builds the commits that were set aside on an outer commit. It returns the conflict of first, if first does not apply there. apart is
// builder.apart.
func (r Request) asideOn(ctx context.Context, onto gitops.OID, how treatment, first, apart gitops.OID) (*builder, *Conflict, error) {
	b := newBuilder(r, nil, onto, how, time.Now())
	b.apart = apart
	if err := b.findReplacements(ctx, nil); err != nil {
		return nil, nil, err
	}
	left, err := b.aside(ctx, onto)
	if err == nil && len(left) > 0 && left[0].Commit == first {
		return nil, &left[0], nil
	}
	return b, nil, err
}

// with adds the commits that could not be built. behind reports that the first one cannot be pending either.
func (b Built) with(unbuilt []Conflict, behind bool) Built {
	for i, c := range unbuilt {
		c.Behind = behind
		b.Unbuilt = append(b.Unbuilt, c.Commit)
		if i == 0 {
			b.Stopped = append(b.Stopped, c)
		}
	}
	return b
}

func pairs(fresh []Fresh) []ledger.Pair {
	var list []ledger.Pair
	for _, f := range fresh {
		list = append(list, f.Pair)
	}
	return list
}

// beside is the state of building the commits that were set aside.
type beside struct {
	on     gitops.OID // the outer commit to build on
	failed map[gitops.OID]Conflict
	newest int // the position of the newest commit that was built
}

// first builds the commits that were set aside and come before the chain, if they apply there.
func (b *builder) first(ctx context.Context) error {
	s := &beside{b.on, map[gitops.OID]Conflict{}, -1}
	err := b.tryAside(ctx, s, func(a history.Aside, waits bool) bool { return a.First && !waits })
	b.on, b.below = s.on, len(b.fresh)
	return err
}

// bringsWaiting reports whether a merge of the chain would bring a commit that should have been built before the chain, but does not apply
// there.
func (b *builder) bringsWaiting(merge quarantine.Link) bool {
	unplaced := func(a history.Aside) bool { return a.First && b.placed[a.Commit] == "" }
	if len(merge.Parents) < 2 || b.plan.LeavesOut(merge.Commit) || !slices.ContainsFunc(b.plan.Aside, unplaced) {
		return false
	}
	return b.bringsAbsent(history.Aside{Brings: b.plan.Brings(b.plan.Links, b.plan.Drops)[merge.Commit]})
}

// aside builds the commits that were set aside on top of an outer commit: first those that may land, then the others. It returns the commits
// that it could not build, in the agent's order. If the branch already has the change of a commit, that commit waits: a commit before it may
// still take the change back. When no such commit is left, it is built without changes, as a commit of the chain is.
func (b *builder) aside(ctx context.Context, on gitops.OID) (unbuilt []Conflict, err error) {
	s := &beside{on, map[gitops.OID]Conflict{}, -1}
	if err := b.tryAllAside(ctx, s); err != nil {
		return nil, err
	}
	if len(s.failed) > 0 && len(b.plan.Decisions.Dropped) == 0 && !slices.ContainsFunc(b.plan.Aside, func(a history.Aside) bool {
		return b.waits(a.Commit) && !a.Side && !s.failed[a.Commit].already
	}) {
		b.keepsEmpty = true
		if err := b.tryAllAside(ctx, s); err != nil {
			return nil, err
		}
	}
	for _, a := range b.plan.Aside {
		if c, there := s.failed[a.Commit]; there {
			unbuilt = append(unbuilt, c)
		}
	}
	return unbuilt, nil
}

// tryAllAside builds the commits that were set aside, are not built yet, and apply: first those that may land, then the others.
func (b *builder) tryAllAside(ctx context.Context, s *beside) error {
	err := b.tryAside(ctx, s, func(a history.Aside, waits bool) bool { return !a.Held && !waits })
	if err == nil {
		err = b.tryAside(ctx, s, func(history.Aside, bool) bool { return true })
	}
	return err
}

// tryAside builds the wanted ones among the commits that were set aside, are not built yet, and apply. waits reports that the commit is a
// merge, and that a commit which only this merge brings is held.
func (b *builder) tryAside(ctx context.Context, s *beside, wanted func(a history.Aside, waits bool) bool) error {
	for i, a := range b.plan.Aside {
		sides, waits := b.sidesOf(a)
		if b.placed[a.Commit] != "" || a.Side || !wanted(a, waits) {
			continue
		}
		before := len(b.fresh)
		b.overrules = a.Commit == b.apart
		c, err := b.setAll(ctx, s.on, append(sides, a), a.Older || i < s.newest)
		if err != nil {
			return err
		}
		if c != nil {
			b.takeBack(before)
			c.Commit, s.failed[a.Commit] = a.Commit, *c
			continue
		}
		delete(s.failed, a.Commit)
		s.newest = max(s.newest, i)
		s.on = b.placed[a.Commit]
	}
	return nil
}

// setAll builds commits that were set aside. All but the last one are on side branches. See setBeside.
func (b *builder) setAll(ctx context.Context, on gitops.OID, commits []history.Aside, older bool) (*Conflict, error) {
	var links []quarantine.Link
	for _, a := range commits {
		links = append(links, a.Link)
	}
	for i := 0; i < len(commits); i++ {
		c, err := b.setBeside(ctx, on, commits[i], older)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		first := -1
		if i < len(commits)-1 && c.Lacking == nil {
			first, err = b.moveSide(ctx, links[:i+1])
		}
		if err != nil || first < 0 {
			return c, err
		}
		i = first - 1
	}
	return nil, nil
}

// sidesOf returns the commits that were set aside, are not built yet, and that only a merge brings. It reports whether one of them is held.
func (b *builder) sidesOf(merge history.Aside) (sides []history.Aside, held bool) {
	if len(merge.Parents) < 2 || merge.Side {
		return nil, false
	}
	wanted := gitops.SetOf(merge.Parents...)
	for _, a := range slices.Backward(b.plan.Aside) { // children before parents
		if b.placed[a.Commit] != "" || !a.Side || !wanted[a.Commit] {
			continue
		}
		sides, held = append(sides, a), held || a.Held
		wanted.Add(a.Parents...)
	}
	slices.Reverse(sides)
	return sides, held
}

// takeBack discards the fresh commits, except the first ones.
func (b *builder) takeBack(first int) {
	for _, f := range b.fresh[first:] {
		delete(b.placed, f.Inner)
		delete(b.done, f.Inner) // no commit that stays has it as a parent: only merges do, and they are not built
		for _, id := range f.Without {
			delete(b.named, id)
		}
	}
	b.fresh = b.fresh[:first]
}

// setBeside builds a commit that was set aside. It applies the commit's change since its first parent to the outer commit on, or, if the commit is
// on a side branch, to the image of that parent. older reports that a newer commit of the agent was built or has landed before. setBeside returns
// a conflict if the change does not apply or is empty there, or if another parent of the commit has no image. A root commit on a side branch is
// built as it is.
func (b *builder) setBeside(ctx context.Context, on gitops.OID, a history.Aside, older bool) (*Conflict, error) {
	inner, err := b.request.Inside.Commit(ctx, a.Commit)
	if err != nil {
		return nil, err
	}
	if inner.Tree, err = b.request.Trees.Tree(ctx, a.Commit); err != nil {
		return nil, err
	}
	c := Conflict{Commit: a.Commit, Paths: []string{}}
	parents, ok := b.parentsBeside(a, on)
	if !ok || b.bringsAbsent(a) || len(a.Parents) > 1 && b.waits(a.Parents[0]) {
		return b.lacking(ctx, c, inner, false)
	}
	tree := inner.Tree
	if len(parents) > 0 {
		var applies bool
		if tree, applies, err = b.applyBeside(ctx, a, tree, parents, &c); err == nil && !applies {
			return b.lacking(ctx, c, inner, true)
		}
		if err != nil {
			return nil, err
		}
	}
	p := ledger.Pair{Inner: a.Commit, Aside: older, Without: slices.Concat(b.unnamedOf(a.Dropped), b.unnamed(b.plan.Aside[:b.request.position(a.Commit)]))}
	if err := b.add(ctx, p, inner, tree, parents); err != nil {
		return nil, err
	}
	b.placed[a.Commit] = b.done[a.Commit].Outer
	return nil, nil
}

// applyBeside applies the change of a commit since its first parent to the first of its outer parents. theirs is the commit's tree. If the change
// does not apply or is empty there, applies is false and c has the reason. A change that is empty only because newer commits have made all of it
// again, or have taken it back, applies.
func (b *builder) applyBeside(ctx context.Context, a history.Aside, theirs gitops.OID, parents []gitops.OID, c *Conflict) (tree gitops.OID, applies bool, err error) {
	before, err := b.request.Trees.Tree(ctx, b.parentOf(a.Link))
	if err != nil {
		return "", false, err
	}
	ours, err := b.treeOf(ctx, parents[0])
	if err != nil {
		return "", false, err
	}
	empty, own := before == theirs, theirs
	if !a.Side {
		if before, theirs, applies, err = b.amongNewer(ctx, a, c, before, theirs); err != nil || !applies {
			return "", false, err
		}
	}
	m := quarantine.Merge{Base: before, Ours: ours, Theirs: theirs, Change: own}
	tree, conflicts, err := b.mergeBeside(ctx, a.Commit, &m, parents[0])
	if err == nil && conflicts == nil && !a.Side {
		var paths []string
		paths, err = b.checkPart(ctx, m, tree)
		c.Paths, c.partly = append(c.Paths, paths...), paths != nil
	}
	if err != nil || c.partly {
		return "", false, err
	}
	if c.already = tree == ours && !empty && len(parents) == 1; c.already && before == theirs {
		if c.already, err = b.lacksOlder(ctx, a.Commit); err != nil {
			return "", false, err
		}
	}
	if conflicts != nil || c.already && !b.keepsEmpty {
		c.Paths, c.Crash = append(c.Paths, conflicts...), b.crash
		return "", false, nil
	}
	if b.request.ByPatch && len(parents) == 1 && before != theirs {
		if c.Refused, err = b.refusal(ctx, a.Commit, m, tree); err != nil || c.Refused != "" {
			return "", false, err
		}
	}
	return tree, true, nil
}

// mergeBeside merges the change of a commit that was set aside with the outer commit on. If they conflict, it tries what else is allowed there, and
// sets NoDirectoryRenames in the merge that it has made.
func (b *builder) mergeBeside(ctx context.Context, commit gitops.OID, m *quarantine.Merge, on gitops.OID) (tree gitops.OID, conflicts []string, err error) {
	tree, conflicts, err = b.mergeOn(ctx, *m)
	if conflicts != nil {
		if m.NoDirectoryRenames, err = b.agentsOnly(ctx, on); m.NoDirectoryRenames && err == nil {
			tree, conflicts, err = b.mergeOn(ctx, *m)
		}
	}
	if conflicts != nil && b.overrules && err == nil {
		if tree, err = b.overrule(ctx, commit, *m); tree != "" && err == nil {
			return tree, nil, b.setLacks(ctx, *m, tree)
		}
	}
	return tree, conflicts, err
}

// agentsOnly reports whether all commits of an outer commit's first-parent history since the airlock's base are the agent's.
func (b *builder) agentsOnly(ctx context.Context, commit gitops.OID) (bool, error) {
	made := map[gitops.OID]bool{b.plan.Ledger.Base.Outer: true}
	for _, p := range b.done {
		made[p.Outer] = true
	}
	for commit != b.plan.Ledger.Base.Outer {
		c, err := b.request.Across.Commit(ctx, commit)
		if agents := made[commit] || b.plan.Ledger.HasOuter(commit); err != nil || !agents || len(c.Parents) == 0 {
			return agents && err == nil, err
		}
		commit = c.Parents[0]
	}
	return true, nil
}

// bringsAbsent reports whether a merge would bring changes of commits that the user dropped, or that are still set aside.
func (b *builder) bringsAbsent(merge history.Aside) bool {
	return slices.ContainsFunc(merge.Brings, func(id gitops.OID) bool { return b.plan.Drops(id) || b.waits(id) })
}

// waits reports whether a commit is still set aside. A dropped commit counts as its first parent.
func (b *builder) waits(id gitops.OID) bool {
	for b.plan.Drops(id) {
		id = b.plan.ParentOf(id)
	}
	return b.placed[id] == "" && b.request.position(id) >= 0
}

// parentsBeside returns the outer parents of a commit that was set aside: none for a root commit that a merge brings. ok is false if one of its
// other parents is left out.
func (b *builder) parentsBeside(a history.Aside, on gitops.OID) (parents []gitops.OID, ok bool) {
	inside := a.Parents
	if !a.Side {
		parents, inside = append(parents, on), a.Parents[min(1, len(a.Parents)):]
	}
	for i, id := range inside {
		placed := b.placed[id] != ""
		if !placed && b.plan.LeavesOut(id) && !b.plan.Drops(id) && (i > 0 || !a.Side) {
			return nil, false
		}
		p, known := b.image(id)
		if !known {
			return nil, false
		}
		if begin := b.begins[a.Commit]; begin != "" && i == 0 {
			p.Outer, placed = begin, true
		}
		if !slices.Contains(parents, p.Outer) {
			parents = append(parents, p.Outer)
		}
		if !placed && b.trees[p.Outer] == "" {
			b.outside[p.Outer] = true
		}
	}
	b.outside[b.onto] = true
	return parents, true
}

// lacking sets Lacking in a conflict if the commit needs commits that the user dropped, or has a parent that is still set aside. own reports that
// the change of the commit itself did not apply: then it needs the dropped commits only if it does not apply to the agent's trees without them.
func (b *builder) lacking(ctx context.Context, c Conflict, inner gitops.Commit, own bool) (*Conflict, error) {
	lacks := slices.ContainsFunc(inner.Parents, func(id gitops.OID) bool { return !b.plan.Drops(id) && b.waits(id) })
	switch {
	case lacks || len(b.plan.Decisions.Dropped) == 0:
	case own:
		var err error
		if lacks, err = b.request.Trees.Needs(ctx, c.Commit, b.plan.Drops); err != nil {
			return nil, err
		}
	default:
		dropped, err := b.request.Trees.before(ctx, c.Commit, b.plan.Drops)
		if err != nil {
			return nil, err
		}
		lacks = len(dropped) > 0
	}
	if lacks {
		c.Lacking = &ledger.Dropped{Commit: c.Commit, Subject: inner.Subject()}
	}
	return &c, nil
}
