package history_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// wanderer is an agent that goes back to any of its commits, and a user who approves its commits in any order. Each commit writes a file
// of its own, or changes the file of an older one, which it then needs.
type wanderer struct {
	t        *testing.T
	seed     int
	r        *rand.Rand
	inner    graph
	outer    graph
	trees    forest
	needs    map[gitops.OID]gitops.OID
	all      []gitops.OID // oldest first
	tip      gitops.OID
	approved map[gitops.OID]bool
	ledger   *ledger.Ledger
	live     map[gitops.OID]bool // the commits whose changes the branch has
	unbuilt  bool                // a commit set aside needs one that the branch does not have: there is a hold
	back     int                 // number of landings that went back to another history
	later    int                 // number of plans that postpone new commits
	onTop    int                 // number of those landings on top of commits that Last does not reach
}

// TestNothingIsLostOnReturn lets agents go back and forth between histories of which any commits are left out, and checks what the
// branch has. Without a hold, that is everything that the agent's tip reaches.
func TestNothingIsLostOnReturn(t *testing.T) {
	t.Parallel()
	back, later, onTop, whole, held := 0, 0, 0, 0, 0
	for seed := range 1500 {
		w := newWanderer(t, seed)
		for range 8 {
			w.work()
			for range 1 + w.r.IntN(3) {
				line := w.inner.sorted(w.inner.reach(w.tip))
				w.approve(line[max(0, len(line)-1-w.r.IntN(4))])
				w.cycle()
			}
			if w.r.IntN(4) > 0 {
				continue
			}
			w.approve(w.all...)
			for w.cycle() {
			}
			if w.unbuilt {
				held++
				break // the user has to decide
			}
			whole++
			for id := range w.inner.reach(w.tip) {
				if !w.live[id] {
					t.Fatalf("seed %d: the tip %s reaches %s, and the branch lacks it without a hold", seed, w.tip, id)
				}
			}
		}
		back, later, onTop = back+w.back, later+w.later, onTop+w.onTop
	}
	t.Logf("%d ways back, %d of them on top of others, %d plans postpone commits, %d whole branches, %d holds", back, onTop, later, whole, held)
	if back < 1000 || later < 100 || onTop < 20 || whole < 1000 {
		t.Error("too few")
	}
}

func newWanderer(t *testing.T, seed int) *wanderer {
	t.Helper()
	root, base := name('a', 0), name('b', 0)
	l, err := ledger.Read(t.TempDir(), ledger.Pair{Inner: root, Outer: base}, base, "")
	if err != nil {
		t.Fatal(err)
	}
	return &wanderer{t: t, seed: seed, r: rand.New(rand.NewPCG(uint64(seed), 5)), inner: graph{root: nil}, outer: graph{base: nil},
		trees: forest{map[gitops.OID]files{root: {}}, map[gitops.OID]files{}}, needs: map[gitops.OID]gitops.OID{}, all: []gitops.OID{root}, tip: root,
		approved: map[gitops.OID]bool{}, ledger: l, live: map[gitops.OID]bool{root: true}}
}

// work makes commits on top of the last one, or of any one.
func (w *wanderer) work() {
	if w.r.IntN(2) == 0 {
		w.tip = w.all[max(0, len(w.all)-1-w.r.IntN(8))]
	}
	for range 1 + w.r.IntN(3) {
		id := name('a', len(w.all))
		tree := maps.Clone(w.trees.of[w.tip])
		path := string(id)
		if before := slices.Sorted(maps.Keys(tree)); len(before) > 0 && w.r.IntN(2) == 0 {
			path = before[w.r.IntN(len(before))]
			w.needs[id] = gitops.OID(tree[path])
		}
		tree[path] = string(id)
		w.inner[id], w.trees.of[id] = []gitops.OID{w.tip}, tree
		w.all, w.tip = append(w.all, id), id
	}
}

func (w *wanderer) approve(commits ...gitops.OID) {
	for _, id := range commits {
		w.approved[id] = true
	}
}

// cycle plans, lands what is approved, and reports whether something landed.
func (w *wanderer) cycle() bool {
	p := w.plan()
	pending := w.build(p)
	end, ends := 0, p.Ends()
	for i, t := range pending {
		if !w.approved[t.Inner] {
			break
		}
		if ends[t.Inner] && !p.Postponed(t.Inner) {
			end = i + 1
		}
	}
	if p.Postpones() {
		w.later++
	}
	if end == 0 {
		return false
	}
	if len(p.Chain) > 0 && w.undoes(p) {
		w.goBack(p)
	}
	for _, t := range pending[:end] {
		w.live[t.Inner] = true
	}
	if err := w.ledger.SetTail(pending); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.ledger.Land(pending[end-1].Outer)
	last := w.ledger.Last().Inner
	for id := range w.inner.reach(last) { // the next changes may count from there
		if w.ledger.Has(id) && !w.live[id] {
			w.t.Fatalf("seed %d: %s landed last and reaches %s, which landed and is not on the branch", w.seed, last, id)
		}
	}
	return true
}

// undoes reports whether the changes of the first new commit do not count from the commit before the new ones.
func (w *wanderer) undoes(p *history.Plan) bool {
	at := w.tip
	for !w.ledger.Has(at) {
		at = w.inner[at][0]
	}
	return p.Since != at || len(p.OnTop) > 0
}

// goBack applies the first new commit's change since the last landed commit and those on top of it.
func (w *wanderer) goBack(p *history.Plan) {
	first, before, after := p.Chain[0], map[gitops.OID]bool{}, map[gitops.OID]bool{}
	for id := range w.inner.reach(p.Last.Inner) {
		before[id] = w.ledger.Has(id)
	}
	for _, id := range p.OnTop {
		before[id] = true
	}
	for id := range w.inner.reach(first) {
		after[id] = w.ledger.Has(id)
	}
	for id := range w.inner {
		if before[id] != after[id] {
			w.live[id] = after[id]
		}
	}
	var undone, superseded []gitops.OID
	for id := range w.inner {
		if w.live[id] != after[id] {
			w.t.Fatalf("seed %d: %s goes back, and the branch has %s: %t", w.seed, first, id, w.live[id])
		}
		if image, there := w.ledger.Image(id); there && before[id] && !after[id] && !w.ledger.Superseded(image.Outer) {
			undone = append(undone, image.Outer)
		}
	}
	slices.Sort(undone)
	if superseded = slices.Sorted(slices.Values(p.Supersedes)); !slices.Equal(superseded, undone) {
		w.t.Fatalf("seed %d: %s supersedes %v, want %v", w.seed, first, superseded, undone)
	}
	if w.back++; len(p.OnTop) > 0 {
		w.onTop++
	}
}

// plan makes the plan of a cycle, as the engine does.
func (w *wanderer) plan() *history.Plan {
	o := history.LeftOut{Tip: w.tip, Commits: map[gitops.OID]bool{}, Held: map[gitops.OID]bool{}, Landed: w.ledger.Has, Drops: func(gitops.OID) bool { return false }}
	f := history.Facts{Tip: w.tip, Ledger: w.ledger, Brought: map[gitops.OID]bool{}}
	for _, id := range w.ledger.LeftOut() {
		o.Commits[id] = true
	}
	for _, id := range w.inner.sorted(w.inner.reach(w.tip)) {
		o.Held[id] = !w.approved[id]
		o.History = append(o.History, quarantine.Link{Commit: id, Parents: w.inner[id]})
	}
	// The links end at landed commits.
	for at := w.tip; !w.ledger.Has(at); at = w.inner[at][0] {
		f.Links = slices.Insert(f.Links, 0, quarantine.Link{Commit: at, Parents: w.inner[at]})
	}
	if len(o.Commits) > 0 {
		f.Left = o.Left()
	}
	p, err := history.New(w.t.Context(), f, w.inner, w.outer)
	if err == nil {
		err = p.Walk(w.t.Context(), w.trees, o.Held)
	}
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	return p
}

// build lists the pairs that would wait: those of the chain up to the first blocked one, and the commits set aside that apply, before it or
// after it.
func (w *wanderer) build(p *history.Plan) (pending []ledger.Pair) {
	named, has := map[gitops.OID]bool{}, maps.Clone(w.live)
	for _, id := range w.ledger.LeftOut() {
		named[id] = true
	}
	add := func(t ledger.Pair, before []history.Aside) {
		t.Outer, t.Merged = name('b', 1+len(w.outer)), true
		on := w.ledger.Last().Outer
		if n := len(pending); n > 0 {
			on = pending[n-1].Outer
		}
		w.outer[t.Outer] = []gitops.OID{on}
		for _, a := range before {
			placed := slices.ContainsFunc(pending, func(t ledger.Pair) bool { return t.Inner == a.Commit })
			if !placed && !named[a.Commit] {
				named[a.Commit], t.Without = true, append(t.Without, a.Commit)
			}
		}
		pending, has[t.Inner] = append(pending, t), true
	}
	w.unbuilt = false
	newest := -1
	aside := func(wanted func(history.Aside) bool) (left bool) {
		for i, a := range p.Aside {
			if need, needs := w.needs[a.Commit]; has[a.Commit] || !wanted(a) || needs && !has[need] {
				left = left || !has[a.Commit]
				continue
			}
			add(ledger.Pair{Inner: a.Commit, Aside: a.Older || i < newest}, p.Aside[:i])
			newest = max(newest, i)
		}
		return left
	}
	aside(func(a history.Aside) bool { return a.First })
	for i, id := range p.Chain {
		if _, blocked := p.Blocked(id); blocked {
			w.unbuilt = true
			return pending
		}
		t := ledger.Pair{Inner: id}
		if i == 0 {
			if t.Supersedes = p.Supersedes; w.undoes(p) {
				has = map[gitops.OID]bool{}
				for id := range w.inner.reach(id) {
					has[id] = w.ledger.Has(id)
				}
			}
		}
		add(t, p.Without(id))
	}
	aside(func(a history.Aside) bool { return !a.Held })
	w.unbuilt = aside(func(history.Aside) bool { return true })
	return pending
}
