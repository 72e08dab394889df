package history_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
)

// TestAnyLeftOut compares the commits set aside in random histories, of which any commits have landed or are left out, with their
// definition.
func TestAnyLeftOut(t *testing.T) {
	t.Parallel()
	asides, forks := 0, 0
	for seed := range 5000 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		m := newModel(t, r)
		landed, dropped := map[gitops.OID]bool{}, map[gitops.OID]bool{}
		o := history.LeftOut{Tip: m.facts.Tip, Commits: map[gitops.OID]bool{}, Landed: func(id gitops.OID) bool { return landed[id] }, Drops: func(id gitops.OID) bool { return dropped[id] }}
		for i, id := range m.inner.sorted(m.inner.reach(o.Tip)) {
			o.History = append(o.History, quarantine.Link{Commit: id, Parents: m.inner[id]})
			switch n := r.IntN(4); {
			case n < 2 || i == 0:
				landed[id], dropped[id] = true, r.IntN(4) == 0 // rejected before its push, or undone before a redo that was killed
			case n == 2:
				o.Commits[id] = true
			default:
				dropped[id] = r.IntN(3) == 0
			}
		}
		left := o.Left()
		aside, absent := left.Earlier, left.Absent
		m.checkAside(t, seed, o, aside)
		for _, l := range o.History {
			var want []gitops.OID
			for id := range m.inner.reach(l.Commit) {
				if o.Commits[id] || dropped[id] && !landed[id] {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			if got := slices.Sorted(slices.Values(absent[l.Commit])); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s lacks %v, want %v", seed, l.Commit, got, want)
			}
		}
		if got, want := linkNames(left.Line), m.lineThatLacks(o, absent); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the line is %v, want %v", seed, got, want)
		}
		asides += len(aside)
		forks += m.checkBeside(t, seed, o, aside)
	}
	if asides < 1000 || forks < 100 {
		t.Errorf("%d commits are set aside, %d of them at the beginning of a side branch", asides, forks)
	}
}

func linkNames(links []quarantine.Link) (names []gitops.OID) {
	for _, l := range links {
		names = append(names, l.Commit)
	}
	return names
}

// lineThatLacks returns the first parents of the newest landed commit on the agent's line, itself included, that reach an absent commit.
func (m model) lineThatLacks(o history.LeftOut, absent map[gitops.OID][]gitops.OID) (line []gitops.OID) {
	for id, below := o.Tip, false; ; id = m.inner[id][0] {
		if below = below || o.Landed(id); below && len(absent[id]) > 0 {
			line = slices.Insert(line, 0, id)
		}
		if len(m.inner[id]) == 0 {
			return line
		}
	}
}

// checkAside checks which commits are set aside, their order, and which of them only merges bring that have not landed.
func (m model) checkAside(t *testing.T, seed int, o history.LeftOut, aside []history.Aside) {
	t.Helper()
	var again, done, newest []gitops.OID
	for id := o.Tip; ; id = m.inner[id][0] {
		if o.Landed(id) {
			newest = append(newest, id)
			break
		}
		if o.Commits[id] {
			again = append(again, id)
		}
		if len(m.inner[id]) == 0 {
			break
		}
	}
	ends := graph{}
	for _, l := range o.History {
		if ends[l.Commit] = l.Parents[:min(1, len(l.Parents))]; o.Landed(l.Commit) {
			ends[l.Commit], done = l.Parents, append(done, l.Commit)
		}
	}
	// What the agent has gone back to ends at landed commits, and has nothing of what the newest landed one on its line reaches.
	back := graph{}
	for id, parents := range m.inner {
		if !o.Landed(id) {
			back[id] = parents
		}
	}
	before, isAgain, lacked, isEnd := m.inner.reach(done...), back.reach(again...), m.inner.reach(newest...), ends.reach(append(done, o.Tip)...)
	var want []gitops.OID
	for _, l := range o.History {
		if o.Commits[l.Commit] && before[l.Commit] && (!isAgain[l.Commit] || lacked[l.Commit]) {
			want = append(want, l.Commit)
		}
	}
	for i, a := range aside {
		if i >= len(want) || a.Commit != want[i] || a.Side == isEnd[a.Commit] || !a.Older {
			t.Fatalf("seed %d: %+v, want %v; end: %v", seed, a, want, isEnd[a.Commit])
		}
	}
	if len(aside) != len(want) {
		t.Fatalf("seed %d: %d are set aside, want %v", seed, len(aside), want)
	}
}

// checkBeside checks that a plan builds no commit that is set aside in its old place, too. It returns the number of commits to which
// this could have happened.
func (m model) checkBeside(t *testing.T, seed int, o history.LeftOut, aside []history.Aside) (forks int) {
	t.Helper()
	f := m.facts
	f.Decisions.Dropped = nil
	for _, l := range f.Links {
		if slices.ContainsFunc(aside, func(a history.Aside) bool { return a.Commit == l.Commit }) {
			forks++
		}
	}
	f.Earlier = aside
	p, err := history.New(t.Context(), f, m.inner, m.outer)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Aside {
		if slices.ContainsFunc(p.Links, func(l quarantine.Link) bool { return l.Commit == a.Commit }) {
			t.Fatalf("seed %d: %s is planned twice", seed, a.Commit)
		}
	}
	return forks
}
