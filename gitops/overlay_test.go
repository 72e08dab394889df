package gitops

import (
	"path/filepath"
	"strings"
	"testing"
)

// What is left out of a tree and put back gives the same tree, whatever it is; put into another tree it goes before
// all that is in its place.
func TestLeaveAndOverlay(t *testing.T) {
	base := files{"a": "1", "b.key": "2", "d/c": "3", "d/e.key": "4", "d/f/g": "5", "link": linkTo + "a", "run": execute + "6", "odd \"name\"\n": "7"}
	for _, format := range []string{"sha1", "sha256"} {
		for _, c := range []struct {
			out    string
			left   string // names that are left in, sorted
			theirs files  // what the agent has on top of that
			want   files  // what comes of it, on top of the base
		}{
			{"*.key", "a d/c d/f/g link odd run", files{"a": "new", "d/e.key": "theirs", "n": "n"}, files{"a": "new", "n": "n"}},
			{"d/", "a b.key link odd run", files{"d": "a file", "b.key": absent}, files{"b.key": absent}},
			{"d/f/g", "a b.key d/c d/e.key link odd run", files{"d/f": linkTo + "/etc", "d/c": absent}, files{"d/c": absent}},
			{"a\nlink", "b.key d/c d/e.key d/f/g odd run", files{"a/b/c": "x", "link": "theirs", "z": "z"}, files{"z": "z"}},
			{"*", "", files{"n/n": "n"}, files{"n/n": "n"}},
			{"none", "a b.key d/c d/e.key d/f/g link odd run", files{"d/c": "new"}, files{"d/c": "new"}},
			{"*\n!d\n!d/c", "d/c", nil, nil},
		} {
			f := &mergeFixture{newInner(t, files{"first": "1"}, "--object-format="+format)}
			base := f.outer.built(f.base, merged(base, files{"first": absent, "history": absent}))
			whole := f.tree(t, base, nil)
			out, _, _ := ParsePatterns(strings.Split(c.out, "\n"))
			part, err := f.q.Leave(t.Context(), f.outer.Repository, whole, out)
			check(t, err)
			b, err := f.q.Bridge(f.outer.Repository, filepath.Join(t.TempDir(), "bridge"))
			check(t, err)
			listed, err := b.Files(t.Context(), part)
			check(t, err)
			var names []string
			for _, file := range listed {
				name, _, _ := strings.Cut(file.Path, " ")
				names = append(names, name)
			}
			if strings.Join(names, " ") != c.left {
				t.Errorf("%q leaves %q, want %q", c.out, names, c.left)
			}
			look := b.Git.Inspect(t.Context())
			o, err := b.Overlay(t.Context(), look, whole, part)
			check(t, err)
			if back, err := o.Apply(t.Context(), part); err != nil || back != whole {
				t.Errorf("%q: put back it is %s, %v; want %s", c.out, back, err, whole)
			}
			if c.theirs != nil && part != whole {
				theirs := treeOn(t, f, b, part, c.theirs)
				if got, err := o.Apply(t.Context(), theirs); err != nil || got != f.tree(t, base, c.want) {
					t.Errorf("%q: over the agent's it is %s, %v; want %s", c.out, got, err, f.tree(t, base, c.want))
				}
			}
			check(t, look.Close())
			check(t, b.Close())
		}
	}
}

// merged are files with others in their place.
func merged(f, others files) files {
	all := files{}
	for name, content := range f {
		all[name] = content
	}
	for name, content := range others {
		all[name] = content
	}
	return all
}

// treeOn makes a tree in the outer repository of one that only the bridge has, with other files on top.
func treeOn(t *testing.T, f *mergeFixture, b *Bridge, tree OID, more files) OID {
	t.Helper()
	listed, err := b.Files(t.Context(), tree)
	check(t, err)
	var index strings.Builder
	for _, file := range listed {
		index.WriteString(file.Mode.String() + " " + string(file.OID) + "\t" + file.Path + "\x00")
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	input(t, f.outer.Top, env, index.String(), "update-index", "-z", "--index-info")
	made := command(t, f.outer.Top, env, "write-tree")
	commit := command(t, f.outer.Top, nil, "commit-tree", "-m", "x", made)
	return f.tree(t, OID(commit), more)
}
