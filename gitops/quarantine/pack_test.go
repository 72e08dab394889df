package quarantine

import (
	"bytes"
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
			gitopstest.Check(t, storePack(t.Context(), w.Git, bytes.NewReader(packOf(format, objects)), few))
			for _, o := range objects {
				if got := w.Run("cat-file", o.kind, string(gitops.HashObject(format, o.kind, o.content))) + "\n"; strings.TrimSuffix(got, "\n") != strings.TrimSuffix(string(o.content), "\n") {
					t.Errorf("a %s of %d bytes came back as %d", o.kind, len(o.content), len(got))
				}
			}
		}
		w.Run("fsck", "--strict", "--no-dangling")
	}
}
