package history_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
)

// files maps paths to entries. An entry names the commit that wrote it, and a mode. A removed file has one, too.
type files map[string]string

// forest holds trees in memory. It implements [history.Trees].
type forest struct {
	of    map[gitops.OID]files // by commit
	trees map[gitops.OID]files // by tree
}

func (f forest) store(tree files) gitops.OID {
	id := gitops.OID(fmt.Sprint(tree)) // fmt sorts the keys
	f.trees[id] = tree
	return id
}

func (f forest) Tree(_ context.Context, commit gitops.OID) (gitops.OID, error) {
	tree, ok := f.of[commit]
	if !ok {
		return "", fmt.Errorf("no commit %s", commit)
	}
	return f.store(tree), nil
}

func (f forest) Merge(_ context.Context, base, ours, theirs gitops.OID) (gitops.OID, []string, error) {
	merged, paths := files{}, maps.Clone(f.trees[ours])
	maps.Copy(paths, f.trees[theirs])
	var conflicts []string
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		b, o, t := f.trees[base][p], f.trees[ours][p], f.trees[theirs][p]
		switch {
		case b == t || o == t:
			merged[p] = o
		case b == o:
			merged[p] = t
		default:
			conflicts = append(conflicts, p)
		}
		if merged[p] == "" {
			delete(merged, p)
		}
	}
	if conflicts != nil {
		return "", conflicts, nil
	}
	return f.store(merged), nil, nil
}

func (f forest) Made(gitops.OID, gitops.OID, gitops.OID) (gitops.OID, []string, bool) {
	return "", nil, false
}

func (f forest) Parent(_ context.Context, commit gitops.OID) (gitops.OID, error) {
	return "", fmt.Errorf("no line of %s is lost", commit)
}

func (f forest) Has(context.Context, gitops.OID) bool { return true }

// grow makes the trees of a history: edits, renames, changes of modes, and merges that take the other side's files.
func (m model) grow(r *rand.Rand) forest {
	f := forest{map[gitops.OID]files{}, map[gitops.OID]files{}}
	for _, id := range m.inner.sorted(m.inner.reach(slices.Collect(maps.Keys(m.inner))...)) {
		tree, parents := files{}, m.inner[id]
		for i, p := range parents {
			for path, entry := range f.of[p] {
				if i == 0 {
					tree[path] = entry
				} else if tree[path] != entry {
					tree[path] = fmt.Sprintf("%s 100644 merged", id)
				}
			}
		}
		for range r.IntN(3) {
			path, mode := string(rune('a'+r.IntN(6))), []string{"100644", "100755", "120000", "removed"}[r.IntN(4)]
			tree[path] = fmt.Sprintf("%s %s", id, mode)
			if mode == "removed" { // a rename
				tree[string(rune('a'+r.IntN(6)))] = fmt.Sprintf("%s 100644 renamed", id)
			}
		}
		if len(parents) == 1 && len(m.inner[parents[0]]) > 0 && r.IntN(4) == 0 {
			tree = maps.Clone(f.of[m.inner[parents[0]][0]]) // takes its parent back
		}
		f.of[id] = tree
	}
	return f
}

// stands is the model of the walk. All entries differ, except where a commit takes its parent back. A commit therefore needs another
// one exactly if it changes an entry that the other one wrote, or if all that it does is to take left-out entries back.
func (m model) stands(p *history.Plan, links []quarantine.Link, f forest, held map[gitops.OID]bool) (left map[gitops.OID]bool) {
	left = map[gitops.OID]bool{}
	gone := func(id gitops.OID) bool { return left[id] || p.Drops(id) }
	standing := func(id gitops.OID, path string) string { // the entry without the commits that are gone
		for len(m.inner[id]) > 0 && (gone(id) || f.of[m.inner[id][0]][path] == f.of[id][path]) {
			id = m.inner[id][0]
		}
		if gone(id) { // a history of its own begins with the files that have landed
			id = p.Last.Inner
		}
		return f.of[id][path]
	}
	var merged func(id gitops.OID) bool // merges a commit that is left out
	merged = func(id gitops.OID) bool {
		if p.Drops(id) && len(m.inner[id]) > 0 {
			return merged(m.inner[id][0])
		}
		return left[id]
	}
	for _, l := range links {
		blocked := len(l.Parents) > 1 && (slices.ContainsFunc(l.Parents, merged) || m.brings(l, links, gone))
		changes, effects := 0, 0
		for _, path := range strings.Split("abcdef", "") {
			if len(l.Parents) == 0 || p.Drops(l.Commit) {
				break
			}
			before, after := f.of[l.Parents[0]][path], f.of[l.Commit][path]
			if before == after {
				continue
			}
			changes++
			switch standing(l.Parents[0], path) {
			case after:
			case before:
				effects++
			default:
				blocked = true
			}
		}
		blocked = blocked || len(l.Parents) == 1 && changes > 0 && effects == 0
		if held[l.Commit] || blocked {
			left[l.Commit] = true
		}
	}
	return left
}

// brings reports whether a merge brings a commit that is gone from another side than its first parent's.
func (m model) brings(l quarantine.Link, links []quarantine.Link, gone func(gitops.OID) bool) bool {
	has, others := m.inner.reach(l.Parents[0]), m.inner.reach(l.Parents[1:]...)
	return slices.ContainsFunc(links, func(o quarantine.Link) bool { return others[o.Commit] && !has[o.Commit] && gone(o.Commit) })
}

// TestAnyHistoryIsWalked walks random histories with held and dropped commits, and compares the result with the model.
func TestAnyHistoryIsWalked(t *testing.T) {
	t.Parallel()
	cases := 5000
	if os.Getenv("AIRLOCK_TEST_LONG") != "" {
		cases = 100_000
	}
	parted := 0
	for seed := range cases {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		m := newModel(t, r)
		f, held := m.grow(r), map[gitops.OID]bool{}
		p, err := history.New(t.Context(), m.facts, m.inner, m.outer)
		if err != nil {
			t.Fatal(err)
		}
		all, chain := slices.Clone(p.Links), slices.Clone(p.Chain)
		for _, l := range all {
			held[l.Commit] = r.IntN(6) == 0 && !p.Drops(l.Commit)
		}
		if err := p.Walk(t.Context(), f, held); err != nil {
			t.Fatal(err)
		}
		m.checkWalk(t, seed, p, all, chain, held, f)
		if len(p.Aside) > 0 {
			parted++
		}
	}
	if parted < cases/20 {
		t.Errorf("%d of %d histories were parted", parted, cases)
	}
}

// again reports whether another commit than the one that wrote an entry brings the entry back.
func (m model) again(all []quarantine.Link, f forest, path, entry string, by gitops.OID) bool {
	return slices.ContainsFunc(all, func(l quarantine.Link) bool {
		return l.Commit != by && len(l.Parents) > 0 && f.of[l.Commit][path] == entry && f.of[l.Parents[0]][path] != entry
	})
}

func (m model) checkWalk(t *testing.T, seed int, p *history.Plan, all []quarantine.Link, chain []gitops.OID, held map[gitops.OID]bool, f forest) {
	t.Helper()
	if len(p.Aside) == 0 {
		if !slices.Equal(p.Chain, chain) {
			t.Fatalf("seed %d: nothing is set aside, and the chain is %v, not %v", seed, p.Chain, chain)
		}
		return
	}
	left := m.stands(p, all, f, held)
	var stand []gitops.OID
	for _, id := range chain {
		if !left[id] {
			stand = append(stand, id)
		}
	}
	none := m.stands(p, all, f, nil) // without the held ones, as the second walk does
	if !slices.Equal(p.Chain, stand) && slices.ContainsFunc(chain, func(id gitops.OID) bool { return none[id] && slices.Contains(p.Chain, id) }) {
		t.Fatalf("seed %d: chain %v, want %v", seed, p.Chain, stand)
	}
	// Each commit is built once: at its place, or on top.
	count := map[gitops.OID]int{}
	for _, l := range p.Links {
		if !p.LeavesOut(l.Commit) {
			count[l.Commit]++
		}
	}
	for _, a := range p.Aside {
		count[a.Commit]++
	}
	for _, l := range all {
		if count[l.Commit] != 1 && !p.Drops(l.Commit) {
			t.Fatalf("seed %d: %s is built %d times", seed, l.Commit, count[l.Commit])
		}
	}
	for _, l := range p.Links {
		if p.LeavesOut(l.Commit) {
			continue
		}
		if left[l.Commit] && none[l.Commit] {
			t.Fatalf("seed %d: %s lands, and does not stand", seed, l.Commit)
		}
		tree, differs := p.Tree(l.Commit)
		for path, entry := range f.trees[tree] {
			var by gitops.OID
			_, _ = fmt.Sscan(entry, &by)
			if differs && (left[by] && none[by] || p.Drops(by)) && !m.again(all, f, path, entry, by) {
				t.Fatalf("seed %d: %s lands with %s of %s, which is left out", seed, l.Commit, path, by)
			}
		}
	}
	for i, a := range p.Aside[1:] {
		before := slices.IndexFunc(all, func(l quarantine.Link) bool { return l.Commit == p.Aside[i].Commit })
		if slices.IndexFunc(all, func(l quarantine.Link) bool { return l.Commit == a.Commit }) < before {
			t.Fatalf("seed %d: the commits set aside are not in the agent's order", seed)
		}
	}
}
