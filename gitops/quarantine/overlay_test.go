package quarantine

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// Leaving files out of a tree and adding them again returns the same tree. In another tree they replace the entries
// at their paths.
func TestLeaveAndOverlay(t *testing.T) {
	base := gitopstest.Files{"a": "1", "b.key": "2", "d/c": "3", "d/e.key": "4", "d/f/g": "5", "link": gitopstest.LinkTo + "a", "run": gitopstest.Execute + "6", "odd \"name\"\n": "7"}
	for _, format := range []string{"sha1", "sha256"} {
		for _, c := range []struct {
			out    string
			left   string           // names that are left in, sorted
			theirs gitopstest.Files // what the agent has on top of that
			want   gitopstest.Files // what comes of it, on top of the base
		}{
			{"*.key", "a d/c d/f/g link odd run", gitopstest.Files{"a": "new", "d/e.key": "theirs", "n": "n"}, gitopstest.Files{"a": "new", "n": "n"}},
			{"d/", "a b.key link odd run", gitopstest.Files{"d": "a file", "b.key": gitopstest.Absent}, gitopstest.Files{"b.key": gitopstest.Absent}},
			{"d/f/g", "a b.key d/c d/e.key link odd run", gitopstest.Files{"d/f": gitopstest.LinkTo + "/etc", "d/c": gitopstest.Absent}, gitopstest.Files{"d/c": gitopstest.Absent}},
			{"a\nlink", "b.key d/c d/e.key d/f/g odd run", gitopstest.Files{"a/b/c": "x", "link": "theirs", "z": "z"}, gitopstest.Files{"z": "z"}},
			{"*", "", gitopstest.Files{"n/n": "n"}, gitopstest.Files{"n/n": "n"}},
			{"none", "a b.key d/c d/e.key d/f/g link odd run", gitopstest.Files{"d/c": "new"}, gitopstest.Files{"d/c": "new"}},
			{"*\n!d\n!d/c", "d/c", nil, nil},
		} {
			f := &mergeFixture{newInner(t, gitopstest.Files{"first": "1"}, "--object-format="+format)}
			base := f.outer.Built(f.base, merged(base, gitopstest.Files{"first": gitopstest.Absent, "history": gitopstest.Absent}))
			whole := f.tree(t, base, nil)
			out, _, _ := ignore.ParseAll(strings.Split(c.out, "\n"))
			part, err := f.q.Leave(t.Context(), f.outer.Repository, whole, out)
			gitopstest.Check(t, err)
			b, err := f.q.Bridge(f.outer.Repository, nil, filepath.Join(t.TempDir(), "bridge"))
			gitopstest.Check(t, err)
			listed, err := b.Files(t.Context(), part)
			gitopstest.Check(t, err)
			var names []string
			for _, file := range listed {
				name, _, _ := strings.Cut(file.Path, " ")
				names = append(names, name)
			}
			if strings.Join(names, " ") != c.left {
				t.Errorf("%q leaves %q, want %q", c.out, names, c.left)
			}
			look := Inspect(t.Context(), b.Git)
			o, err := b.Overlay(t.Context(), look, whole, part)
			gitopstest.Check(t, err)
			if back, err := o.Apply(t.Context(), part); err != nil || back != whole {
				t.Errorf("%q: put back it is %s, %v; want %s", c.out, back, err, whole)
			}
			if c.theirs != nil && part != whole {
				theirs := treeOn(t, f, b, part, c.theirs)
				if got, err := o.Apply(t.Context(), theirs); err != nil || got != f.tree(t, base, c.want) {
					t.Errorf("%q: over the agent's it is %s, %v; want %s", c.out, got, err, f.tree(t, base, c.want))
				}
			}
			gitopstest.Check(t, look.Close())
			gitopstest.Check(t, b.Close())
		}
	}
}

// merged returns files in which some are replaced by others.
func merged(f, others gitopstest.Files) gitopstest.Files {
	all := gitopstest.Files{}
	for name, content := range f {
		all[name] = content
	}
	for name, content := range others {
		all[name] = content
	}
	return all
}

// treeOn creates a tree in the outer repository from a tree of the bridge, with other files on top.
func treeOn(t *testing.T, f *mergeFixture, b *Bridge, tree gitops.OID, more gitopstest.Files) gitops.OID {
	t.Helper()
	listed, err := b.Files(t.Context(), tree)
	gitopstest.Check(t, err)
	var index strings.Builder
	for _, file := range listed {
		index.WriteString(file.Mode.String() + " " + string(file.OID) + "\t" + file.Path + "\x00")
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	gitopstest.Input(t, f.outer.Top, env, index.String(), "update-index", "-z", "--index-info")
	made := gitopstest.Command(t, f.outer.Top, env, "write-tree")
	commit := gitopstest.Command(t, f.outer.Top, nil, "commit-tree", "-m", "x", made)
	return f.tree(t, gitops.OID(commit), more)
}
