package history

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Trees reads and merges the trees of inner commits.
type Trees interface {
	// Tree returns the tree of an inner commit.
	Tree(ctx context.Context, commit gitops.OID) (gitops.OID, error)
	// Parent returns the first parent of an inner commit, or empty for a root commit.
	Parent(ctx context.Context, commit gitops.OID) (gitops.OID, error)
	// Merge makes the three-way merge of ours and theirs. If they conflict, it returns the paths and no tree.
	Merge(ctx context.Context, base, ours, theirs gitops.OID) (tree gitops.OID, conflicts []string, err error)
	// Made returns the result of a merge that was made before, perhaps by an earlier process. The tree may be in no store any more.
	Made(base, ours, theirs gitops.OID) (tree gitops.OID, conflicts []string, known bool)
	// Has reports whether a tree is in a store.
	Has(ctx context.Context, tree gitops.OID) bool
}

// walked is the result of a walk.
type walked struct {
	left  map[gitops.OID]bool       // held or blocked
	trees map[gitops.OID]gitops.OID // trees without the changes of the commits left out
	taken gitops.Set[gitops.OID]    // see [Plan.TakenOut]
	// blocked maps each commit that does not stand without the commits left out to the paths that conflict. The list is empty if its change is
	// empty without them, or if it merges one of them.
	blocked map[gitops.OID][]string
	absent  absent
}

// block leaves a commit out because it does not stand without the commits left out.
func (w *walked) block(id gitops.OID, paths ...string) {
	w.left[id], w.blocked[id] = true, append([]string{}, paths...)
}

// mostWalked bounds the commits after the first one left out that are tried without it in one cycle, since each may need
// a merge. The others wait until those have landed.
const mostWalked = 1000

// Walk finds the commits that stand without the held ones, and sets the held and blocked commits aside if others
// stand after them. A commit stands if its change since its first parent applies to the commits that stand before it,
// and is not empty then. A merge stands if all its parents stand, where a dropped parent counts as its own first
// parent, and if it brings no commit that is left out or dropped. If no commit stands after the ones left out, the plan stays as it is.
//
// held has the commits that may not land, and then, for the case that nothing can land without those, the ones among them that no
// commit can be pending behind. Those that only wait for a verdict then are pending in the agent's order, so that the user can see them.
func (p *Plan) Walk(ctx context.Context, t Trees, held ...map[gitops.OID]bool) error {
	if err := p.KeepShared(ctx, t); err != nil {
		return err
	}
	p.setFirst()
	for i, out := range held {
		if i > 0 && len(out) == len(held[i-1]) || !slices.ContainsFunc(p.Links, func(l quarantine.Link) bool { return out[l.Commit] }) {
			continue
		}
		w, err := p.walk(ctx, out, t)
		if err != nil || p.setAside(w) {
			return err
		}
	}
	brings := p.Brings(p.Links, p.Drops)
	if len(p.behind)+len(brings) == 0 && !slices.ContainsFunc(p.Links, func(l quarantine.Link) bool { return p.Drops(l.Commit) }) {
		return nil
	}
	w, err := p.walk(ctx, nil, t)
	if err != nil || p.setAside(w) {
		return err
	}
	p.trees, p.taken, p.blocked = w.trees, w.taken, w.blocked
	return nil
}

func (p *Plan) walk(ctx context.Context, held map[gitops.OID]bool, t Trees) (walked, error) {
	w := walked{left: map[gitops.OID]bool{}, trees: map[gitops.OID]gitops.OID{}, blocked: map[gitops.OID][]string{}, absent: absent{}}
	for id, absent := range p.Absent {
		w.absent[id] = slices.DeleteFunc(slices.Clone(absent), p.first)
	}
	err := p.seedLanded(ctx, &w, t)
	if err == nil {
		err = p.seed(ctx, &w, t)
	}
	if err == nil && len(p.behind) > 0 {
		err = p.seedLine(ctx, &w, t)
	}
	if err != nil {
		return w, err
	}
	parent := map[gitops.OID]gitops.OID{} // first parents of dropped commits
	mergesLeft := func(l quarantine.Link) bool {
		return len(l.Parents) > 1 && slices.ContainsFunc(l.Parents, func(id gitops.OID) bool {
			for parent[id] != "" {
				id = parent[id]
			}
			return w.left[id]
		})
	}
	tried := 0 // links after the first one that is left out
	for _, l := range p.Links {
		dropped := p.Drops(l.Commit)
		if dropped && len(l.Parents) > 0 {
			parent[l.Commit] = l.Parents[0]
		}
		if len(w.left) > 0 {
			tried++
		}
		if tried > mostWalked {
			w.block(l.Commit)
		}
		switch {
		case held[l.Commit]:
			w.left[l.Commit] = true
		case mergesLeft(l) || len(w.absent.brought(l)) > 0:
			w.block(l.Commit)
		}
		if err := p.step(ctx, &w, l, dropped || w.left[l.Commit], t); err != nil {
			return w, err
		}
		w.absent.add(l, dropped || w.left[l.Commit]) // step may have left it out
	}
	return w, nil
}

// seed computes the trees of the commits that were left out earlier if a commit that a merge brings begins at one of them. Those that are
// built before the new commits have their changes.
func (p *Plan) seed(ctx context.Context, w *walked, t Trees) error {
	if !slices.ContainsFunc(p.Links, p.begins) {
		return nil
	}
	for _, a := range p.Earlier {
		if err := p.step(ctx, w, a.Link, !a.First, t); err != nil {
			return err
		}
	}
	return nil
}

// seedLine computes the tree of the landed commit to which the agent has gone back, without the changes that the branch lacks. If they
// cannot be taken out of it, the first new commit is blocked.
func (p *Plan) seedLine(ctx context.Context, w *walked, t Trees) error {
	for _, l := range p.Line {
		if err := p.step(ctx, w, l, p.behind[l.Commit], t); err != nil {
			return err
		}
		if w.left[l.Commit] && len(p.Chain) > 0 {
			delete(w.left, l.Commit)
			w.block(p.Chain[0], w.blocked[l.Commit]...)
		}
	}
	return nil
}

// step computes the tree of one commit. A commit that is left out gets the tree of its first parent, as if it had
// changed nothing.
func (p *Plan) step(ctx context.Context, w *walked, l quarantine.Link, out bool, t Trees) error {
	if len(l.Parents) == 0 {
		if !out {
			return nil
		}
		tree, err := t.Tree(ctx, p.beforeRoot(l.Commit))
		w.trees[l.Commit] = tree
		return err
	}
	base, err := t.Tree(ctx, l.Parents[0])
	if err != nil {
		return err
	}
	ours := base
	if tree, changed := w.trees[l.Parents[0]]; changed {
		ours = tree
	}
	theirs, err := t.Tree(ctx, l.Commit)
	if err != nil {
		return err
	}
	tree := theirs
	switch {
	case out || base == theirs:
		tree = ours
	case base != ours:
		var conflicts []string
		if tree, conflicts, err = t.Merge(ctx, base, ours, theirs); err != nil {
			return err
		}
		// A commit that takes back one that is left out would land without changes.
		if conflicts != nil || tree == ours && len(l.Parents) == 1 {
			w.block(l.Commit, conflicts...)
			tree = ours
		}
	}
	if tree != theirs {
		w.trees[l.Commit] = tree
	}
	return nil
}

// beforeRoot returns the commit whose tree a root commit gets that is left out: the last landed one, whose image it has. If that tree has
// changes that the branch lacks, or if a landed commit follows the root commit, this is the airlock's root, from which the change counts then.
func (p *Plan) beforeRoot(root gitops.OID) gitops.OID {
	if len(p.Again) > 0 || p.behind[root] {
		return p.Ledger.Base.Inner
	}
	return p.Last.Inner
}

// setAside takes the commits that were left out from the chain, unless nothing stands after them. If some were set aside
// before, it does so in any case, because a commit may need those. It reports whether it has done so.
func (p *Plan) setAside(w walked) bool {
	all, inChain := p.Links, gitops.SetOf(p.Chain...)
	last, first := -1, -1
	for i, l := range all {
		if w.left[l.Commit] && first < 0 {
			first = i
		}
		if inChain[l.Commit] && !w.left[l.Commit] {
			last = i
		}
	}
	if first < 0 || first > last && len(p.Earlier) == 0 {
		return false
	}
	p.left, p.trees, p.taken, p.blocked = w.left, w.trees, w.taken, w.blocked
	p.Links = slices.Clone(all)
	for i, l := range p.Links {
		if w.left[l.Commit] {
			p.Links[i].Parents = l.Parents[:min(1, len(l.Parents))]
		}
	}
	p.Chain = slices.DeleteFunc(slices.Clone(p.Chain), func(id gitops.OID) bool { return w.left[id] })
	p.postpones = len(p.Chain) == 0 && len(inChain) > 0 && (p.Since != p.found || p.Fork != "" || p.lined && len(p.Supersedes) > 0)
	p.Links = p.along(p.Chain)
	built := map[gitops.OID]bool{}
	for _, l := range p.Links {
		built[l.Commit] = !w.left[l.Commit]
	}
	points := pointsOf(all, built, inChain)
	p.Aside, p.before = slices.Clone(p.Earlier), map[gitops.OID]int{}
	var dropped []gitops.OID
	for i, l := range all {
		if inChain[l.Commit] {
			p.before[l.Commit] = len(p.Aside)
		}
		if p.Drops(l.Commit) {
			dropped = append(dropped, p.GoneWith(Aside{Link: l})...)
		}
		if built[l.Commit] || p.Drops(l.Commit) {
			continue
		}
		a := Aside{Link: l, Side: !inChain[l.Commit] && !points[l.Commit], Held: w.left[l.Commit] && w.blocked[l.Commit] == nil, Older: i < last || p.postpones, Brings: w.absent.brought(l)}
		if !a.Side { // the merge follows
			a.Dropped = slices.Clip(dropped)
		}
		p.Aside = append(p.Aside, a)
	}
	return true
}

// pointsOf returns the commits that are parents of built ones, or first parents of others in the agent's own line: see [Aside.Side].
func pointsOf(all []quarantine.Link, built, inChain map[gitops.OID]bool) map[gitops.OID]bool {
	points := gitops.Set[gitops.OID]{}
	for _, l := range slices.Backward(all) { // children before parents
		switch {
		case built[l.Commit]:
			points.Add(l.Parents...)
		case (inChain[l.Commit] || points[l.Commit]) && len(l.Parents) > 0:
			points[l.Parents[0]] = true
		}
	}
	return points
}

// Aside is a commit that was set aside.
type Aside struct {
	quarantine.Link
	Side  bool // only merges that have not landed bring it, so that no landing ends there
	Held  bool // it may not land, for a reason of its own
	Older bool // the agent's history has a commit after it that is built before it, or has landed; or it is postponed
	// First reports that it may land, and is older than the commits of Chain, whose changes count from a history that has it. It is built
	// before them, so that commits that land together are in the agent's order. If that conflicts, it is built after them.
	First bool
	// Brings are commits that were left out or dropped, and whose changes come with a merge: see [Brought].
	Brings []gitops.OID
	// Dropped are the dropped commits before it that have not landed, unless it is on a side.
	Dropped []gitops.OID
}

// kept returns the commits set aside without dropped ones, and without those that only dropped merges reach.
func (p *Plan) kept(aside []Aside) []Aside {
	reached := gitops.Set[gitops.OID]{}
	var kept []Aside
	for _, a := range slices.Backward(aside) { // children before parents
		if p.Drops(a.Commit) || a.Side && !reached[a.Commit] {
			continue
		}
		kept = append(kept, a)
		reached.Add(a.Parents...)
	}
	slices.Reverse(kept)
	return kept
}

// Held returns the commits that were set aside because they may not land.
func (p *Plan) Held() []gitops.OID {
	var held []gitops.OID
	for _, a := range p.Aside {
		if a.Held {
			held = append(held, a.Commit)
		}
	}
	return held
}

// ParentOf returns the first parent of a commit that the user dropped, or that was set aside when later commits landed.
// It returns empty for other commits and for roots.
func (p *Plan) ParentOf(inner gitops.OID) gitops.OID {
	if d := p.dropOf(inner); d != nil {
		return d.Parent
	}
	for _, a := range p.Earlier {
		if a.Commit == inner && len(a.Parents) > 0 {
			return a.Parents[0]
		}
	}
	return ""
}

// LeavesOut reports whether an inner commit is not built where the agent's history has it.
func (p *Plan) LeavesOut(inner gitops.OID) bool { return p.Drops(inner) || p.left[inner] }

// Tree returns the tree of a commit of Links without the changes of commits that are left out, if it differs from the
// commit's own tree.
func (p *Plan) Tree(inner gitops.OID) (tree gitops.OID, differs bool) {
	tree, differs = p.trees[inner]
	return tree, differs
}

// TakenOut reports whether the trees of the plan lack the change of a commit that was left out when later ones landed.
func (p *Plan) TakenOut(inner gitops.OID) bool { return p.taken[inner] }

// Blocked returns the paths at which a commit of Links conflicts with the absence of dropped commits.
func (p *Plan) Blocked(inner gitops.OID) (paths []string, blocked bool) {
	paths, blocked = p.blocked[inner]
	return paths, blocked
}

// Without returns the commits set aside that the agent made before a commit of the chain.
func (p *Plan) Without(inner gitops.OID) []Aside {
	if n, chain := p.before[inner]; chain {
		return p.Aside[:n]
	}
	return p.Earlier
}

// Missing maps inner commits to the commits before them that their outer commits lack. pending are the built pairs.
func (p *Plan) Missing(pending []ledger.Pair) map[gitops.OID][]gitops.OID {
	missing, dropped, placed := map[gitops.OID][]gitops.OID{}, []gitops.OID(nil), map[gitops.OID]bool{}
	if p.Dropped+len(p.Aside) == 0 {
		return missing
	}
	for _, l := range p.Links {
		if p.Drops(l.Commit) {
			dropped = append(dropped, p.GoneWith(Aside{Link: l})...)
		}
		if !p.LeavesOut(l.Commit) && slices.Contains(p.Chain, l.Commit) {
			missing[l.Commit] = slices.Clip(dropped)
			for _, a := range p.Without(l.Commit) {
				missing[l.Commit] = append(missing[l.Commit], p.GoneWith(a)...)
			}
		}
	}
	for _, t := range pending {
		missing[t.Inner] = slices.DeleteFunc(slices.Clone(missing[t.Inner]), func(id gitops.OID) bool { return placed[id] })
		placed[t.Inner] = true
		i := slices.IndexFunc(p.Aside, func(a Aside) bool { return a.Commit == t.Inner })
		for _, a := range p.Aside[:max(0, i)] {
			if !placed[a.Commit] {
				missing[t.Inner] = append(missing[t.Inner], a.Commit)
			}
		}
	}
	return missing
}

// GoneWith returns a commit that was set aside, after the dropped ones that only it brings, or a dropped commit, after those that only it
// brings.
func (p *Plan) GoneWith(a Aside) []gitops.OID {
	lost := slices.DeleteFunc(slices.Clone(a.Brings), func(id gitops.OID) bool { return !p.Drops(id) })
	return append(slices.Concat(lost, p.cut[a.Commit]), a.Commit)
}

// Ends returns the commits at which a landing can end.
func (p *Plan) Ends() map[gitops.OID]bool {
	ends := gitops.SetOf(p.Chain...)
	for _, a := range p.Aside {
		if !a.Side {
			ends[a.Commit] = true
		}
	}
	return ends
}

// Needs maps the commits that do not stand without the held and the dropped ones to the paths that conflict. It does not
// change the plan.
func (p *Plan) Needs(ctx context.Context, held map[gitops.OID]bool, t Trees) (map[gitops.OID][]string, error) {
	w, err := p.walk(ctx, held, t)
	return w.blocked, err
}
