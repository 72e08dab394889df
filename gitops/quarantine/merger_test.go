package quarantine

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// mergeFixture merges trees of the outer repository.
type mergeFixture struct{ *airlock }

// tree returns the tree of the base with changes.
func (f *mergeFixture) tree(t testing.TB, on gitops.OID, changes gitopstest.Files) gitops.OID {
	t.Helper()
	tree, err := f.outer.Tree(t.Context(), f.outer.Built(on, changes))
	gitopstest.Check(t, err)
	return tree
}

// bridges returns a bridge for each merger of this build.
func (f *mergeFixture) bridges(t testing.TB) map[string]*Bridge {
	t.Helper()
	bridges := map[string]*Bridge{}
	for _, name := range []string{"git", "merger"} {
		b, err := f.q.Bridge(f.outer.Repository, nil, filepath.Join(t.TempDir(), "bridge"))
		gitopstest.Check(t, err)
		t.Cleanup(func() { gitopstest.Check(t, b.Close()) })
		if name == "git" && b.merger != nil {
			gitopstest.Check(t, b.merger.close())
			b.merger = nil
		}
		bridges[name] = b
	}
	return bridges
}

var mergeLines = strings.Repeat("line\n", 30)

func TestMergers(t *testing.T) {
	t.Parallel()
	base := gitopstest.Files{"a": "1\n", "d/b": "2\n", "d/c": "3\n", "lines": mergeLines, "link": gitopstest.LinkTo + "a", "old/x": "x\n", "old/y": "y\n"}
	for name, c := range map[string]struct {
		ours, theirs gitopstest.Files
		merged       gitopstest.Files // nil: conflicts
		conflicts    []string
		apart        bool // nothing removed, no path on both sides
	}{
		"apart":                  {gitopstest.Files{"a": "ours\n"}, gitopstest.Files{"d/b": "theirs\n", "d/n": "new\n"}, gitopstest.Files{"a": "ours\n", "d/b": "theirs\n", "d/n": "new\n"}, nil, true},
		"new folders":            {gitopstest.Files{"n/a": "1\n"}, gitopstest.Files{"n/b": "2\n", "m/m": gitopstest.Execute + "3\n"}, gitopstest.Files{"n/a": "1\n", "n/b": "2\n", "m/m": gitopstest.Execute + "3\n"}, nil, true},
		"one side only":          {gitopstest.Files{}, gitopstest.Files{"d/b": "theirs\n"}, gitopstest.Files{"d/b": "theirs\n"}, nil, true},
		"mode, link":             {gitopstest.Files{"a": gitopstest.Execute + "1\n"}, gitopstest.Files{"link": gitopstest.LinkTo + "d"}, gitopstest.Files{"a": gitopstest.Execute + "1\n", "link": gitopstest.LinkTo + "d"}, nil, true},
		"the same on both sides": {gitopstest.Files{"a": "same\n"}, gitopstest.Files{"a": "same\n"}, gitopstest.Files{"a": "same\n"}, nil, false},
		"lines":                  {gitopstest.Files{"lines": "first\n" + mergeLines}, gitopstest.Files{"lines": mergeLines + "last\n"}, gitopstest.Files{"lines": "first\n" + mergeLines + "last\n"}, nil, false},
		"removed":                {gitopstest.Files{"a": gitopstest.Absent}, gitopstest.Files{"d/b": "theirs\n"}, gitopstest.Files{"a": gitopstest.Absent, "d/b": "theirs\n"}, nil, false},
		"renamed, changed":       {gitopstest.Files{"lines": gitopstest.Absent, "moved": mergeLines}, gitopstest.Files{"lines": mergeLines + "last\n"}, gitopstest.Files{"lines": gitopstest.Absent, "moved": mergeLines + "last\n"}, nil, false},
		"folder renamed, added":  {gitopstest.Files{"old/x": gitopstest.Absent, "old/y": gitopstest.Absent, "new/x": "x\n", "new/y": "y\n"}, gitopstest.Files{"old/z": "z\n"}, nil, []string{"new/z"}, false},
		"both changed":           {gitopstest.Files{"a": "ours\n"}, gitopstest.Files{"a": "theirs\n"}, nil, []string{"a"}, false},
		"both added":             {gitopstest.Files{"n": "ours\n"}, gitopstest.Files{"n": "theirs\n"}, nil, []string{"n"}, false},
		"changed and removed":    {gitopstest.Files{"a": gitopstest.Absent}, gitopstest.Files{"a": "theirs\n"}, nil, []string{"a"}, false},
		"file against folder":    {gitopstest.Files{"n": "ours\n"}, gitopstest.Files{"n/x": "theirs\n"}, nil, []string{"n~ours"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &mergeFixture{newInner(t, base)}
			m := Merge{Base: f.tree(t, f.base, nil), Ours: f.tree(t, f.base, c.ours), Theirs: f.tree(t, f.base, c.theirs)}
			want := gitops.OID("")
			if c.merged != nil {
				want = f.tree(t, f.base, c.merged)
			}
			for by, b := range f.bridges(t) {
				tree, conflicts, err := b.Merge(t.Context(), m)
				gitopstest.Check(t, err)
				if tree != want {
					t.Errorf("%s: tree %s, want %s", by, tree, want)
				}
				if len(conflicts) != len(c.conflicts) || name != "file against folder" && !slices.Equal(conflicts, c.conflicts) {
					t.Errorf("%s: conflicts %q, want %q", by, conflicts, c.conflicts)
				}
				if b.merger == nil {
					continue
				}
				quick, err := b.merger.merge(t.Context(), m)
				gitopstest.Check(t, err)
				if c.apart && quick == "" || quick != "" && quick != want {
					t.Errorf("%s: merged by itself: %q, want %q, by itself: %v", by, quick, want, c.apart)
				}
			}
		})
	}
}

// TestMergeOfOwnSides checks that a file stays in the folder in which the agent has added it, although a side has renamed the folder's other
// files.
func TestMergeOfOwnSides(t *testing.T) {
	t.Parallel()
	f := &mergeFixture{newInner(t, gitopstest.Files{"old/x": "x\n", "old/y": "y\n"})}
	renamed := gitopstest.Files{"old/x": gitopstest.Absent, "old/y": gitopstest.Absent, "new/x": "x\n", "new/y": "y\n"}
	m := Merge{Base: f.tree(t, f.base, nil), Ours: f.tree(t, f.base, renamed), Theirs: f.tree(t, f.base, gitopstest.Files{"old/z": "z\n"}), NoDirectoryRenames: true}
	renamed["old/z"] = "z\n"
	want := f.tree(t, f.base, renamed)
	for by, b := range f.bridges(t) {
		tree, conflicts, err := b.Merge(t.Context(), m)
		gitopstest.Check(t, err)
		if tree != want || len(conflicts) > 0 {
			t.Errorf("%s: tree %s with conflicts %q, want %s", by, tree, conflicts, want)
		}
	}
}

// All mergers return the same results.
func TestMergersAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	base := gitopstest.Files{}
	for n := range 12 {
		base[fmt.Sprintf("d%d/f%d", n%3, n)] = fmt.Sprintf("%d\n%s", n, mergeLines)
	}
	f := &mergeFixture{newInner(t, base)}
	bridges := f.bridges(t)
	side := func() gitops.OID {
		changes := gitopstest.Files{}
		for range 1 + r.IntN(3) {
			n := r.IntN(14)
			name := fmt.Sprintf("d%d/f%d", n%3, n)
			switch r.IntN(6) {
			case 0:
				changes[name] = gitopstest.Absent
			case 1:
				changes[name], changes[fmt.Sprintf("e/%d", n)] = gitopstest.Absent, fmt.Sprintf("%d\n%s", n, mergeLines)
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
		gitopstest.Check(t, err)
		got, others, err := bridges["merger"].Merge(t.Context(), m)
		gitopstest.Check(t, err)
		if got != want || !slices.Equal(others, conflicts) {
			t.Errorf("%+v: git: %q %q, the merger: %q %q", m, want, conflicts, got, others)
		}
	}
}

// git does the merges if libgit2 cannot name the store or does not support the object format.
func TestMergeInAnyRepository(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"sha256": {"--object-format=sha256"}, "sha1": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &mergeFixture{newInner(t, gitopstest.Files{"a": "1\n", "b": "1\n"}, args...)}
			m := Merge{Base: f.tree(t, f.base, nil), Ours: f.tree(t, f.base, gitopstest.Files{"a": "2\n"}), Theirs: f.tree(t, f.base, gitopstest.Files{"b": "2\n"})}
			want := f.tree(t, f.base, gitopstest.Files{"a": "2\n", "b": "2\n"})
			b, err := f.q.Bridge(f.outer.Repository, nil, filepath.Join(t.TempDir(), "line\nbreak \"quoted\" #"))
			gitopstest.Check(t, err)
			defer b.Close()
			if tree, _, err := b.Merge(t.Context(), m); err != nil || tree != want {
				t.Errorf("%s, %v, want %s", tree, err, want)
			}
		})
	}
}

// BenchmarkMerge merges trees of 1,000 files, one of which changed on each side, by git and by the merger of this build.
func BenchmarkMerge(b *testing.B) {
	base := gitopstest.Files{}
	for n := range 1000 {
		base[fmt.Sprintf("d%d/f%d", n%30, n)] = fmt.Sprint(n)
	}
	f := &mergeFixture{newInner(b, base)}
	m := Merge{Base: f.tree(b, f.base, nil), Theirs: f.tree(b, f.base, gitopstest.Files{"d1/f1": "theirs"})}
	var ours []gitops.OID
	for n := range 50 {
		ours = append(ours, f.tree(b, f.base, gitopstest.Files{"d2/f2": fmt.Sprint("ours", n)}))
	}
	for name, bridge := range f.bridges(b) {
		b.Run(name, func(b *testing.B) {
			begun := processorTime(b)
			for b.Loop() {
				for _, m.Ours = range ours {
					_, _, err := bridge.Merge(b.Context(), m)
					gitopstest.Check(b, err)
				}
			}
			b.ReportMetric((processorTime(b)-begun)/float64(b.N*len(ours)), "cpu-ms/merge")
		})
	}
}

// Git merges and patches on a tree that a merge in process has made.
func TestMergeOnAMerge(t *testing.T) {
	t.Parallel()
	f := &mergeFixture{newInner(t, gitopstest.Files{"a": "1\n", "b": "1\n", "d/lines": mergeLines})}
	b := f.bridges(t)["merger"]
	on := f.outer.At("refs/heads/main")
	first := Merge{Base: f.tree(t, on, nil), Ours: f.tree(t, on, gitopstest.Files{"a": "2\n", "d/n": "n\n"}), Theirs: f.tree(t, on, gitopstest.Files{"b": "2\n", "d/lines": "first\n" + mergeLines})}
	ours, conflicts, err := b.Merge(t.Context(), first)
	gitopstest.Check(t, err)
	theirs := f.tree(t, on, gitopstest.Files{"d/lines": mergeLines + "last\n"})
	got, more, err := b.Merge(t.Context(), Merge{Base: first.Base, Ours: ours, Theirs: theirs})
	gitopstest.Check(t, err)
	want := f.tree(t, on, gitopstest.Files{"a": "2\n", "b": "2\n", "d/n": "n\n", "d/lines": "first\n" + mergeLines + "last\n"})
	if got != want || conflicts != nil || more != nil {
		t.Errorf("tree %s, want %s; conflicts %q, %q", got, want, conflicts, more)
	}
	again, _, err := b.Merge(t.Context(), Merge{Base: first.Base, Ours: ours, Theirs: f.tree(t, on, gitopstest.Files{"e/e": "e\n"})})
	gitopstest.Check(t, err)
	patched, err := b.Patch(t.Context(), Merge{Base: first.Base, Ours: again, Theirs: theirs})
	gitopstest.Check(t, err)
	if want := f.tree(t, on, gitopstest.Files{"a": "2\n", "b": "2\n", "d/n": "n\n", "e/e": "e\n", "d/lines": "first\n" + mergeLines + "last\n"}); patched != want {
		t.Errorf("the patch made %s, want %s", patched, want)
	}

	// Both make the tree that git has made, and git needs it.
	changed := func(a, b string) gitops.OID {
		return f.tree(t, on, gitopstest.Files{"a": a, "b": b, "d/n": "n\n", "d/lines": "first\n" + mergeLines + "last\n"})
	}
	same, _, err := b.Merge(t.Context(), Merge{Base: changed("1\n", "1\n"), Ours: changed("2\n", "1\n"), Theirs: changed("1\n", "2\n")})
	gitopstest.Check(t, err)
	if same != want {
		t.Fatalf("tree %s, want %s", same, want)
	}
	_, conflicts, err = b.Merge(t.Context(), Merge{Base: first.Base, Ours: same, Theirs: f.tree(t, on, gitopstest.Files{"d/lines": "other\n" + mergeLines})})
	if err != nil || len(conflicts) != 1 {
		t.Errorf("merge on a tree made twice: conflicts %q, %v", conflicts, err)
	}
}
