package history_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// forgetful is a forest of which the merged trees are removed after each plan. Their names stay known. It implements [history.Trees].
type forgetful struct {
	m *remaking
	forest
	made   map[[3]gitops.OID]merged
	inner  map[gitops.OID]bool // trees of commits
	there  map[gitops.OID]bool // merged trees
	merges int                 // of this plan
	before int                 // merges of the last plan
	saved  int                 // merges that were known
	other  bool                // the names are those of another git
}

type merged struct {
	tree      gitops.OID
	conflicts []string
}

func newForgetful(m *remaking) *forgetful {
	return &forgetful{m: m, forest: m.trees, made: map[[3]gitops.OID]merged{}, inner: map[gitops.OID]bool{}, there: map[gitops.OID]bool{}}
}

func (f *forgetful) Tree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	tree, err := f.forest.Tree(ctx, commit)
	f.inner[tree] = true
	return tree, err
}

func (f *forgetful) Has(_ context.Context, tree gitops.OID) bool {
	return f.inner[tree] || f.there[tree]
}

func (f *forgetful) Made(base, ours, theirs gitops.OID) (gitops.OID, []string, bool) {
	found, known := f.made[[3]gitops.OID{base, ours, theirs}]
	if known {
		f.saved++
	}
	if f.other && found.conflicts == nil {
		found.tree += "!"
	}
	return found.tree, found.conflicts, known
}

func (f *forgetful) Merge(ctx context.Context, base, ours, theirs gitops.OID) (gitops.OID, []string, error) {
	for _, tree := range []gitops.OID{base, ours, theirs} {
		if !f.Has(ctx, tree) {
			f.m.t.Fatalf("seed %d: tree %s is in no store", f.m.seed, tree)
		}
	}
	f.merges++
	tree, conflicts, err := f.forest.Merge(ctx, base, ours, theirs)
	f.made[[3]gitops.OID{base, ours, theirs}] = merged{tree, conflicts}
	if conflicts == nil {
		f.there[tree] = true
	}
	return tree, conflicts, err
}

// compare compares a plan with the one that was made with f, and lets f forget its trees.
func (f *forgetful) compare(want, got *history.Plan) {
	f.m.t.Helper()
	same := reflect.DeepEqual(want.Chain, got.Chain) && reflect.DeepEqual(want.Aside, got.Aside) && reflect.DeepEqual(want.Links, got.Links)
	ids := []gitops.OID{want.Found(), want.Last.Inner}
	for _, l := range want.Links {
		ids = append(append(ids, l.Commit), l.Parents...)
	}
	for _, id := range ids {
		tree, differs := want.Tree(id)
		other, too := got.Tree(id)
		paths, blocked := want.Blocked(id)
		others, _ := got.Blocked(id)
		same = same && tree == other && differs == too && reflect.DeepEqual(paths, others) && want.TakenOut(id) == got.TakenOut(id)
		if differs && !f.Has(f.m.t.Context(), other) {
			f.m.t.Fatalf("seed %d: tree %s of %s is in no store, blocked %t", f.m.seed, other, id, blocked)
		}
	}
	if !same {
		f.m.t.Fatalf("seed %d: plan\n%+v\nwant\n%+v", f.m.seed, got, want)
	}
	clear(f.there)
	f.merges, f.before = 0, f.merges
}

// TestLandedTreesFromEarlierCycles makes random plans as [TestRemadeEntryStays] does. With the merges of earlier cycles, of which the trees are gone, they
// are the same.
func TestLandedTreesFromEarlierCycles(t *testing.T) {
	t.Parallel()
	saved := [2]int{}
	for seed := range 600 {
		m := newRemaking(t, seed)
		m.recalls = newForgetful(m)
		for i := range 10 {
			for range 1 + m.r.IntN(3) {
				m.work()
			}
			m.recalls.other = seed%2 == 1 && i%3 == 2
			for m.cycle() {
			}
		}
		saved[seed%2] += m.recalls.saved
	}
	if t.Logf("%d merges were known", saved); saved[0] < 1000 || saved[1] < 1000 {
		t.Error("too few")
	}
}

// TestLandedTreesInFewMerges lets many commits land after one that is dropped. A further plan makes few merges, if one merge of all of them gives
// what many merges have given. Otherwise it makes not much more than there are commits.
func TestLandedTreesInFewMerges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ again, most int }{{0, 3}, {1, 20}, {40, 210}} { // again: number of dropped entries that are taken back and made again
		m := newRemaking(t, 0)
		m.recalls = newForgetful(m)
		add := func(n int, entry string) gitops.OID {
			parent, id := m.line[len(m.line)-1], name('a', len(m.line))
			tree := files{"a": fmt.Sprint(n), "b": "1", "c": "0"}
			for i := range c.again {
				tree[fmt.Sprint(i)] = "1"
			}
			delete(tree, entry)
			m.inner[id], m.trees.of[id], m.line = []gitops.OID{parent}, tree, append(m.line, id)
			return id
		}
		dropped := add(0, "")
		m.facts.Decisions.Dropped = append(m.facts.Decisions.Dropped, ledger.Dropped{Commit: dropped, Parent: m.line[0]})
		for n := range 200 {
			entry := ""
			if n%5 == 1 {
				entry = fmt.Sprint(n / 5)
			}
			add(n+1, entry)
			for m.cycle() {
			}
		}
		m.held[add(201, "b")] = true
		add(202, "b")
		m.plan()
		known := m.recalls.saved
		add(203, "b")
		if m.plan(); m.recalls.before > c.most || m.recalls.saved-known < 200 || len(m.facts.Ledger.Landed) < 200 {
			t.Errorf("%d merges, want at most %d, %d of %d were known", m.recalls.before, c.most, m.recalls.saved-known, len(m.facts.Ledger.Landed))
		}
	}
}
