package history_test

import (
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestRevertedAgain checks which commits are taken back, and which are new again, after a landing without them, and that a decision about a
// landed commit leaves nothing out.
// Commit 2 has landed without its parent 1. In the fourth case, 4 has landed after that, on the root. In the
// last one, 5 is between them, has landed, too, and is the parent of 3.
func TestRevertedAgain(t *testing.T) {
	t.Parallel()
	id := func(n int) gitops.OID { return name('a', n) }
	for _, c := range []struct {
		title  string
		parent int // of the new commit 3
		fourth bool
		want   []gitops.OID
	}{
		{"the landed commit is amended", 1, false, []gitops.OID{id(1)}},
		{"the agent goes on", 2, false, nil},
		{"the agent leaves both", 0, false, []gitops.OID{id(1)}},
		{"the commit landed last does not have it", 1, true, nil},
		{"both have it, and the user drops it", 5, false, nil},
	} {
		inner := graph{id(0): nil, id(1): {id(0)}, id(2): {id(1)}, id(3): {id(c.parent)}, id(4): {id(0)}, id(5): {id(1)}}
		outer := graph{name('b', 0): nil, name('b', 2): {name('b', 0)}, name('b', 4): {name('b', 2)}}
		l, err := ledger.Read(t.TempDir(), ledger.Pair{Inner: id(0), Outer: name('b', 0)}, name('b', 0), "")
		if err != nil {
			t.Fatal(err)
		}
		pairs := []ledger.Pair{{Inner: id(2), Outer: name('b', 2), Merged: true, Without: []gitops.OID{id(1)}}}
		if c.parent == 5 {
			inner[id(2)], outer[name('b', 5)], outer[name('b', 2)] = []gitops.OID{id(5)}, []gitops.OID{name('b', 0)}, []gitops.OID{name('b', 5)}
			pairs = []ledger.Pair{{Inner: id(5), Outer: name('b', 5), Merged: true, Without: []gitops.OID{id(1)}}, {Inner: id(2), Outer: name('b', 2), Merged: true}}
		}
		if c.fourth {
			pairs = append(pairs, ledger.Pair{Inner: id(4), Outer: name('b', 4), Supersedes: []gitops.OID{name('b', 2)}})
		}
		if err := l.SetTail(pairs); err != nil {
			t.Fatal(err)
		}
		l.Land(pairs[len(pairs)-1].Outer)
		f := history.Facts{Tip: id(3), Ledger: l, Decisions: ledger.Decisions{Dropped: []ledger.Dropped{{Commit: id(2), Parent: id(1)}}}}
		for _, n := range []int{1, 3} {
			if n == 3 || c.parent == 1 || c.parent == 5 {
				f.Links = append(f.Links, quarantine.Link{Commit: id(n), Parents: inner[id(n)]})
			}
		}
		p, err := history.New(t.Context(), f, inner, outer)
		if err != nil || !slices.Equal(p.Again, c.want) {
			t.Errorf("%s: %v, again %v, want %v", c.title, err, p.Again, c.want)
		}
		if p.Drops(id(2)) || p.ParentOf(id(2)) != "" {
			t.Errorf("%s: the landed commit is left out", c.title)
		}
	}
}
