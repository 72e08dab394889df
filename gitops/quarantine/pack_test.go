package quarantine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// Git reads exactly the given objects from a pack that we wrote.
func TestPackOf(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorld(t, "--object-format="+format)
		tree := gitops.OID(w.Run("hash-object", "-t", "tree", "-w", "--stdin"))
		var objects []object
		for _, n := range []int{0, 1, 15, 16, 2047, 2048, 300_000} {
			objects = append(objects, object{"commit", gitops.Commit{Tree: tree, Author: "A <a@x> 1 +0000", Committer: "C <c@x> 2 +0000", Message: []byte(strings.Repeat("m", n))}.Bytes()})
		}
		for _, kind := range []string{"blob", "tree"} {
			objects = append(objects, object{kind, nil})
		}
		for _, few := range []bool{true, false} {
			gitopstest.Check(t, storePack(t.Context(), w.Git, format, objects, few))
			for _, o := range objects {
				if got := w.Run("cat-file", o.kind, string(gitops.HashObject(format, o.kind, o.content))) + "\n"; strings.TrimSuffix(got, "\n") != strings.TrimSuffix(string(o.content), "\n") {
					t.Errorf("a %s of %d bytes came back as %d", o.kind, len(o.content), len(got))
				}
			}
		}
		w.Run("fsck", "--strict", "--no-dangling")
	}
}

// The index of a pack is the one that git index-pack makes. An object with another content than its name says is refused.
func TestIndexOf(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorld(t, "--object-format="+format)
		for _, n := range []int{0, 1, 2, 700} {
			var objects []object
			var names []gitops.OID
			for i := range n {
				objects = append(objects, object{"blob", []byte(strings.Repeat("x", i*i%5000) + strconv.Itoa(i))})
				names = append(names, gitops.HashObject(format, "blob", objects[i].content))
			}
			pack, at := packOf(format, objects)
			got, err := indexOf(format, pack, at, objects, names)
			gitopstest.Check(t, err)
			base := filepath.Join(t.TempDir(), "p")
			gitopstest.Check(t, os.WriteFile(base+".pack", pack, 0o600))
			w.Run("index-pack", "--no-rev-index", base+".pack")
			if want, err := os.ReadFile(base + ".idx"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %d objects: the index differs from git's, %v", format, n, err)
			}
			if n == 2 {
				names[0], names[1] = names[1], names[0]
				if _, err := indexOf(format, pack, at, objects, names); err == nil {
					t.Error("an object with another content was accepted")
				}
			}
		}
	}
}
