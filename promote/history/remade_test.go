package history_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// remaking is an agent that writes the same few entries again and again, and a user who refuses some of its commits: by a verdict, or by a rule.
type remaking struct {
	t       *testing.T
	seed    int
	r       *rand.Rand
	inner   graph
	trees   forest
	line    []gitops.OID // the agent's commits, oldest first, and the root
	held    map[gitops.OID]bool
	facts   history.Facts
	images  map[gitops.OID]gitops.OID // trees of outer commits, by inner commits
	remade  int                       // entries of landed commits that a refused commit has written as well
	recalls *forgetful                // if set, each plan is made a second time with it
}

// TestRemadeEntryStays lets commits land behind refused ones, while the agent takes the refused ones back and makes their changes again. For each
// path, the branch has what the newest landed commit that changes it has made.
func TestRemadeEntryStays(t *testing.T) {
	t.Parallel()
	remade := 0
	for seed := range 2000 {
		m := newRemaking(t, seed)
		for range 6 {
			for range 1 + m.r.IntN(3) {
				m.work()
			}
			for m.cycle() { // until no commit has to be left out
			}
			m.newestStays()
		}
		remade += m.remade
	}
	if t.Logf("%d entries are made again", remade); remade < 1000 {
		t.Error("too few")
	}
}

func newRemaking(t *testing.T, seed int) *remaking {
	t.Helper()
	root, base := name('a', 0), name('b', 0)
	l, err := ledger.Read(t.TempDir(), ledger.Pair{Inner: root, Outer: base}, base, "")
	if err != nil {
		t.Fatal(err)
	}
	m := &remaking{t: t, seed: seed, r: rand.New(rand.NewPCG(uint64(seed), 7)), inner: graph{root: nil}, line: []gitops.OID{root}, held: map[gitops.OID]bool{},
		trees: forest{of: map[gitops.OID]files{root: {"a": "0", "b": "0", "c": "0"}}, trees: map[gitops.OID]files{}}, images: map[gitops.OID]gitops.OID{}}
	m.facts = history.Facts{Ledger: l, Brought: map[gitops.OID]bool{}}
	m.images[root] = m.trees.store(m.trees.of[root])
	return m
}

// work makes a commit that changes one or two entries, and may refuse it.
func (m *remaking) work() {
	parent, id := m.line[len(m.line)-1], name('a', len(m.line))
	tree := maps.Clone(m.trees.of[parent])
	for range 1 + m.r.IntN(2) {
		tree[string(rune('a'+m.r.IntN(3)))] = fmt.Sprint(m.r.IntN(3))
	}
	m.inner[id], m.trees.of[id], m.line = []gitops.OID{parent}, tree, append(m.line, id)
	if len(m.line) == 2 && m.r.IntN(4) == 0 {
		m.inner[id] = nil // a root commit
	}
	switch m.r.IntN(8) {
	case 0:
		m.held[id] = true
	case 1:
		m.facts.Decisions.Dropped = append(m.facts.Decisions.Dropped, ledger.Dropped{Commit: id, Parent: parent})
	}
}

// cycle plans and builds the new commits, and lands those of the chain. It reports whether one of them does not apply to the branch, and is held
// from now on.
func (m *remaking) cycle() bool {
	m.t.Helper()
	p := m.plan()
	image, pending := m.images[p.Last.Inner], []ledger.Pair(nil)
	for i, id := range p.Chain {
		if m.held[id] { // none after it stands
			break
		}
		since := m.parent(id)
		if i == 0 {
			since = p.Since
		}
		base, ours, theirs := m.treeIn(p, since), image, m.treeIn(p, id)
		tree, conflicts, _ := m.trees.Merge(m.t.Context(), base, ours, theirs)
		if _, blocked := p.Blocked(id); blocked || conflicts != nil || tree == ours && base != theirs {
			m.held[id] = true
			return true
		}
		image, m.images[id] = tree, tree
		pending = append(pending, ledger.Pair{Inner: id, Outer: "b" + id[1:], Merged: true})
	}
	if len(pending) == 0 {
		return false
	}
	missing, known := p.Missing(pending), gitops.SetOf(m.facts.Ledger.LeftOut()...)
	for i, t := range pending {
		for _, id := range missing[t.Inner] {
			if !known[id] {
				known[id], pending[i].Without = true, append(pending[i].Without, id)
			}
		}
	}
	if err := m.facts.Ledger.SetTail(pending); err != nil {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	m.facts.Ledger.Land(pending[len(pending)-1].Outer)
	return false
}

func (m *remaking) plan() *history.Plan {
	o := history.LeftOut{Tip: m.line[len(m.line)-1], Commits: map[gitops.OID]bool{}, Held: m.held, Landed: m.facts.Ledger.Has, Drops: m.facts.Drops}
	for _, id := range m.facts.Ledger.LeftOut() {
		if !o.Drops(id) {
			o.Commits[id] = true
		}
	}
	f := m.facts
	f.Tip = o.Tip
	for _, id := range m.line {
		l := quarantine.Link{Commit: id, Parents: m.inner[id]}
		o.History, f.Links = append(o.History, l), append(f.Links, l)
		if f.Ledger.Has(id) {
			f.Links = nil
		}
	}
	f.Left = o.Left()
	walk := func(t history.Trees) *history.Plan {
		p, err := history.New(m.t.Context(), f, m.inner, graph{})
		if err == nil {
			err = p.Walk(m.t.Context(), t, m.held)
		}
		if err != nil {
			m.t.Fatalf("seed %d: %v", m.seed, err)
		}
		return p
	}
	p := walk(m.trees)
	if m.recalls != nil {
		m.recalls.compare(p, walk(m.recalls))
	}
	return p
}

// parent returns the first parent of a commit, or the airlock's root.
func (m *remaking) parent(id gitops.OID) gitops.OID { return append(m.inner[id], m.line[0])[0] }

func (m *remaking) treeIn(p *history.Plan, id gitops.OID) gitops.OID {
	if tree, differs := p.Tree(id); differs {
		return tree
	}
	return m.trees.store(m.trees.of[id])
}

// newestStays checks the branch.
func (m *remaking) newestStays() {
	m.t.Helper()
	last := m.facts.Ledger.Last().Inner
	want, refused := maps.Clone(m.trees.of[m.line[0]]), map[string]bool{}
	for _, id := range m.line[1 : 1+slices.Index(m.line[1:], last)+1] {
		for path, entry := range m.trees.of[id] {
			switch {
			case entry == m.trees.of[m.parent(id)][path]:
			case !m.facts.Ledger.Has(id):
				refused[path+entry] = true
			default:
				if want[path] = entry; refused[path+entry] {
					m.remade++
				}
			}
		}
	}
	if got := m.trees.trees[m.images[last]]; !maps.Equal(got, want) {
		for _, id := range m.line {
			m.t.Logf("%s %v landed %t held %t dropped %t image %v", id[38:], m.trees.of[id], m.facts.Ledger.Has(id), m.held[id], m.facts.Drops(id), m.trees.trees[m.images[id]])
		}
		m.t.Fatalf("seed %d: the branch has %v, want %v", m.seed, got, want)
	}
}
