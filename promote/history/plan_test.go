package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// graph is a history in memory. It maps each commit to its parents.
type graph map[gitops.OID][]gitops.OID

// reach returns all commits that some commits reach, including themselves.
func (g graph) reach(tips ...gitops.OID) map[gitops.OID]bool {
	reached := map[gitops.OID]bool{}
	for todo := slices.Clone(tips); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if parents, there := g[id]; there && !reached[id] {
			reached[id] = true
			todo = append(todo, parents...)
		}
	}
	return reached
}

// sorted returns the reached commits, parents before children.
func (g graph) sorted(reached map[gitops.OID]bool) []gitops.OID {
	var out []gitops.OID
	done := map[gitops.OID]bool{}
	var visit func(gitops.OID)
	visit = func(id gitops.OID) {
		if !reached[id] || done[id] {
			return
		}
		done[id] = true
		for _, p := range g[id] {
			visit(p)
		}
		out = append(out, id)
	}
	var ids []gitops.OID
	for id := range reached {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		visit(id)
	}
	return out
}

// Unreached implements [history.Graph].
func (g graph) Unreached(_ context.Context, tips, others []gitops.OID) ([]gitops.OID, error) {
	reached := g.reach(tips...)
	for id := range g.reach(others...) {
		delete(reached, id)
	}
	sorted := g.sorted(reached)
	slices.Reverse(sorted)
	return sorted, nil
}

// name makes a commit's name.
func name(prefix byte, n int) gitops.OID { return gitops.OID(fmt.Sprintf("%c%039d", prefix, n)) }

// model is a random inner history of which a part has landed.
type model struct {
	inner, outer graph
	facts        history.Facts
}

func newModel(t *testing.T, r *rand.Rand) model {
	t.Helper()
	root, base := name('a', 0), name('b', 0)
	m := model{inner: graph{root: nil}, outer: graph{base: nil}}
	grow := func(from gitops.OID, count, first int) (tip gitops.OID) {
		all := []gitops.OID{from}
		for n := range count {
			id := name('a', first+n)
			m.inner[id] = []gitops.OID{all[len(all)-1]}
			switch {
			case r.IntN(5) == 0: // a side branch
				m.inner[id] = []gitops.OID{all[r.IntN(len(all))]}
			case r.IntN(4) == 0 && len(all) > 1: // a merge
				if other := all[r.IntN(len(all)-1)]; other != m.inner[id][0] {
					m.inner[id] = append(m.inner[id], other)
				}
			case r.IntN(25) == 0: // a separate history
				m.inner[id] = nil
			}
			all = append(all, id)
		}
		return all[len(all)-1]
	}
	tip := grow(root, r.IntN(8), 1)
	l, err := ledger.Read(t.TempDir(), ledger.Pair{Inner: root, Outer: base}, base, "")
	if err != nil {
		t.Fatal(err)
	}
	// Everything that tip reaches lands, in order.
	var landed []ledger.Pair
	onto := base
	for i, id := range m.inner.sorted(m.inner.reach(tip)) {
		if id == root {
			continue
		}
		p := ledger.Pair{Inner: id, Outer: name('b', i+1)}
		m.outer[p.Outer] = []gitops.OID{onto}
		onto = p.Outer
		landed = append(landed, p)
	}
	if err := l.SetTail(landed); err != nil {
		t.Fatal(err)
	}
	l.Land(onto)
	// The agent continues from the tip or from any commit before it.
	from := tip
	if r.IntN(3) == 0 {
		all := m.inner.sorted(m.inner.reach(tip))
		from = all[r.IntN(len(all))]
	}
	m.facts = history.Facts{Tip: grow(from, r.IntN(10), 100), Ledger: l, Brought: map[gitops.OID]bool{}}
	for _, id := range m.inner.sorted(m.inner.reach(m.facts.Tip)) {
		if l.Has(id) {
			continue
		}
		m.facts.Links = append(m.facts.Links, quarantine.Link{Commit: id, Parents: m.inner[id]})
		if r.IntN(8) == 0 {
			d := ledger.Dropped{Commit: id}
			if len(m.inner[id]) > 0 {
				d.Parent = m.inner[id][0]
			}
			m.facts.Decisions.Dropped = append(m.facts.Decisions.Dropped, d)
		}
	}
	return m
}

// TestAnyHistoryIsPlanned plans random histories and checks the plans against the rules in the package documentation.
func TestAnyHistoryIsPlanned(t *testing.T) {
	t.Parallel()
	cases := 5000
	if os.Getenv("AIRLOCK_TEST_LONG") != "" {
		cases = 100_000
	}
	for seed := range cases {
		m := newModel(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		before := slices.Clone(m.facts.Links)
		p, err := history.New(t.Context(), m.facts, m.inner, m.outer)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(before, m.facts.Links, func(a, b quarantine.Link) bool { return a.Commit == b.Commit && slices.Equal(a.Parents, b.Parents) }) {
			t.Fatalf("seed %d: the plan changes its facts", seed)
		}
		m.checkChain(t, seed, p)
		m.checkLinks(t, seed, p)
		m.checkSuperseded(t, seed, p)
	}
	t.Logf("%d histories", cases)
}

// checkChain compares the chain with the first-parent history.
func (m model) checkChain(t *testing.T, seed int, p *history.Plan) {
	t.Helper()
	var want []gitops.OID
	for id := m.facts.Tip; !m.facts.Ledger.Has(id); {
		if !p.Drops(id) {
			want = append(want, id)
		}
		if len(m.inner[id]) == 0 {
			break
		}
		id = m.inner[id][0]
	}
	slices.Reverse(want)
	if !slices.Equal(p.Chain, want) {
		t.Fatalf("seed %d: chain %v, want %v", seed, p.Chain, want)
	}
}

// checkLinks compares the links with the commits that the chain reaches when dropped commits count as their first
// parents.
func (m model) checkLinks(t *testing.T, seed int, p *history.Plan) {
	t.Helper()
	thinned := graph{}
	for id, parents := range m.inner {
		if p.Drops(id) {
			parents = parents[:min(1, len(parents))]
		}
		thinned[id] = parents
	}
	want := thinned.reach(p.Chain...)
	for id := range want {
		if m.facts.Ledger.Has(id) {
			delete(want, id)
		}
	}
	at := map[gitops.OID]int{}
	waits := 0
	for i, l := range p.Links {
		if !want[l.Commit] {
			t.Fatalf("seed %d: %s is built although the chain does not reach it", seed, l.Commit)
		}
		at[l.Commit] = i
		for _, parent := range l.Parents {
			if _, built := at[parent]; !built && want[parent] {
				t.Fatalf("seed %d: %s comes before its parent %s", seed, l.Commit, parent)
			}
		}
		if !p.Drops(l.Commit) {
			waits++
		}
	}
	if len(p.Links) != len(want) || p.Waits != waits || p.Waits+p.Dropped != len(m.facts.Links) {
		t.Fatalf("seed %d: %d links of %d, %d wait, %d dropped", seed, len(p.Links), len(want), p.Waits, p.Dropped)
	}
	for i, id := range p.Chain { // each commit of the chain follows exactly the commits that it and those before it reach
		reached := thinned.reach(p.Chain[:i+1]...)
		for _, l := range p.Links[:at[id]+1] {
			if !reached[l.Commit] {
				t.Fatalf("seed %d: %s lands with %s, which does not reach it", seed, l.Commit, id)
			}
		}
	}
}

// checkSuperseded compares the undone commits with the landed commits that the agent has lost.
func (m model) checkSuperseded(t *testing.T, seed int, p *history.Plan) {
	t.Helper()
	var want []gitops.OID
	if len(p.Chain) > 0 {
		has := m.inner.reach(p.Chain[0])
		if last := m.facts.Ledger.Last().Inner; !has[last] {
			reached := m.inner.reach(last)
			for _, l := range m.facts.Ledger.Landed {
				if reached[l.Inner] && !has[l.Inner] {
					want = append(want, l.Outer)
				}
			}
		}
	}
	got := slices.Clone(p.Supersedes)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d: supersedes %v, want %v", seed, got, want)
	}
}
