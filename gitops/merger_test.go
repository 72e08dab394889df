package gitops

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mergeFixture makes merges of trees that are in the outer repository.
type mergeFixture struct{ *inner }

// tree is the tree of the base with changes.
func (f *mergeFixture) tree(t *testing.T, on OID, changes files) OID {
	t.Helper()
	tree, err := f.outer.Tree(t.Context(), f.outer.built(on, changes))
	check(t, err)
	return tree
}

// bridges are bridges with each merger that this program was built with.
func (f *mergeFixture) bridges(t *testing.T) map[string]*Bridge {
	t.Helper()
	bridges := map[string]*Bridge{}
	for _, name := range []string{"git", "merger"} {
		b, err := f.q.Bridge(f.outer.Repository, filepath.Join(t.TempDir(), "bridge"))
		check(t, err)
		t.Cleanup(func() { check(t, b.Close()) })
		if name == "git" && b.merger != nil {
			check(t, b.merger.close())
			b.merger = nil
		}
		bridges[name] = b
	}
	return bridges
}

var mergeLines = strings.Repeat("line\n", 30)

func TestMergers(t *testing.T) {
	t.Parallel()
	base := files{"a": "1\n", "d/b": "2\n", "d/c": "3\n", "lines": mergeLines, "link": linkTo + "a", "old/x": "x\n", "old/y": "y\n"}
	for name, c := range map[string]struct {
		ours, theirs files
		merged       files // nil: conflicts
		conflicts    []string
		apart        bool // nothing removed, no path on both sides
	}{
		"apart":                  {files{"a": "ours\n"}, files{"d/b": "theirs\n", "d/n": "new\n"}, files{"a": "ours\n", "d/b": "theirs\n", "d/n": "new\n"}, nil, true},
		"new folders":            {files{"n/a": "1\n"}, files{"n/b": "2\n", "m/m": execute + "3\n"}, files{"n/a": "1\n", "n/b": "2\n", "m/m": execute + "3\n"}, nil, true},
		"one side only":          {files{}, files{"d/b": "theirs\n"}, files{"d/b": "theirs\n"}, nil, true},
		"mode, link":             {files{"a": execute + "1\n"}, files{"link": linkTo + "d"}, files{"a": execute + "1\n", "link": linkTo + "d"}, nil, true},
		"the same on both sides": {files{"a": "same\n"}, files{"a": "same\n"}, files{"a": "same\n"}, nil, false},
		"lines":                  {files{"lines": "first\n" + mergeLines}, files{"lines": mergeLines + "last\n"}, files{"lines": "first\n" + mergeLines + "last\n"}, nil, false},
		"removed":                {files{"a": absent}, files{"d/b": "theirs\n"}, files{"a": absent, "d/b": "theirs\n"}, nil, false},
		"renamed, changed":       {files{"lines": absent, "moved": mergeLines}, files{"lines": mergeLines + "last\n"}, files{"lines": absent, "moved": mergeLines + "last\n"}, nil, false},
		"folder renamed, added":  {files{"old/x": absent, "old/y": absent, "new/x": "x\n", "new/y": "y\n"}, files{"old/z": "z\n"}, nil, []string{"new/z"}, false},
		"both changed":           {files{"a": "ours\n"}, files{"a": "theirs\n"}, nil, []string{"a"}, false},
		"both added":             {files{"n": "ours\n"}, files{"n": "theirs\n"}, nil, []string{"n"}, false},
		"changed and removed":    {files{"a": absent}, files{"a": "theirs\n"}, nil, []string{"a"}, false},
		"file against folder":    {files{"n": "ours\n"}, files{"n/x": "theirs\n"}, nil, []string{"n~ours"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &mergeFixture{newInner(t, base)}
			m := Merge{Base: f.tree(t, f.base, nil), Ours: f.tree(t, f.base, c.ours), Theirs: f.tree(t, f.base, c.theirs)}
			want := OID("")
			if c.merged != nil {
				want = f.tree(t, f.base, c.merged)
			}
			for by, b := range f.bridges(t) {
				tree, conflicts, err := b.Merge(t.Context(), m)
				check(t, err)
				if tree != want {
					t.Errorf("%s: tree %s, want %s", by, tree, want)
				}
				if len(conflicts) != len(c.conflicts) || name != "file against folder" && !slices.Equal(conflicts, c.conflicts) {
					t.Errorf("%s: conflicts %q, want %q", by, conflicts, c.conflicts)
				}
				if b.merger == nil {
					continue
				}
				quick, err := b.merger.merge(m)
				check(t, err)
				if (quick != "") != c.apart {
					t.Errorf("%s: merged by itself: %q, want that: %v", by, quick, c.apart)
				}
			}
		})
	}
}

// Whatever is merged, by whatever merges, comes out the same.
func TestMergersAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	base := files{}
	for n := range 12 {
		base[fmt.Sprintf("d%d/f%d", n%3, n)] = fmt.Sprintf("%d\n%s", n, mergeLines)
	}
	f := &mergeFixture{newInner(t, base)}
	bridges := f.bridges(t)
	side := func() OID {
		changes := files{}
		for range 1 + r.IntN(3) {
			n := r.IntN(14)
			name := fmt.Sprintf("d%d/f%d", n%3, n)
			switch r.IntN(6) {
			case 0:
				changes[name] = absent
			case 1:
				changes[name], changes[fmt.Sprintf("e/%d", n)] = absent, fmt.Sprintf("%d\n%s", n, mergeLines)
			case 2:
				changes[name] = fmt.Sprintf("%d\n%schanged %d\n", n, mergeLines, r.IntN(2))
			case 3:
				changes[name] = fmt.Sprintf("changed %d\n%s", r.IntN(2), mergeLines)
			default:
				changes[fmt.Sprintf("d%d/new %d", n%3, r.IntN(40))] = fmt.Sprint(r.IntN(2))
			}
		}
		return f.tree(t, f.base, changes)
	}
	m := Merge{Base: f.tree(t, f.base, nil)}
	for range 40 {
		m.Ours, m.Theirs = side(), side()
		want, conflicts, err := bridges["git"].Merge(t.Context(), m)
		check(t, err)
		got, others, err := bridges["merger"].Merge(t.Context(), m)
		check(t, err)
		if got != want || !slices.Equal(others, conflicts) {
			t.Errorf("%+v: git: %q %q, the merger: %q %q", m, want, conflicts, got, others)
		}
	}
}

// A store that libgit2 could not name, or a format that it does not know, is git's.
func TestMergeInAnyRepository(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"sha256": {"--object-format=sha256"}, "sha1": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &mergeFixture{newInner(t, files{"a": "1\n", "b": "1\n"}, args...)}
			m := Merge{Base: f.tree(t, f.base, nil), Ours: f.tree(t, f.base, files{"a": "2\n"}), Theirs: f.tree(t, f.base, files{"b": "2\n"})}
			want := f.tree(t, f.base, files{"a": "2\n", "b": "2\n"})
			b, err := f.q.Bridge(f.outer.Repository, filepath.Join(t.TempDir(), "line\nbreak \"quoted\" #"))
			check(t, err)
			defer b.Close()
			if tree, _, err := b.Merge(t.Context(), m); err != nil || tree != want {
				t.Errorf("%s, %v, want %s", tree, err, want)
			}
		})
	}
}
