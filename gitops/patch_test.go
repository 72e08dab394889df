package gitops_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestPatches reads the changes of several commits at once, in an order of its own. A file contains the name of another commit,
// and one commit has no change.
func TestPatches(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	first := w.CommitAll(gitopstest.Files{"a": "1\n"})
	second := w.CommitAll(gitopstest.Files{"a": "1\n" + string(first) + "\n"})
	w.Run("commit", "-q", "--allow-empty", "-m", "nothing")
	empty := gitops.OID(w.Run("rev-parse", "HEAD"))
	ids, diffs := []gitops.OID{empty, second, first}, map[gitops.OID]string{}
	var order []gitops.OID
	gitopstest.Check(t, w.Patches(t.Context(), ids, func(id gitops.OID, diff []byte) error {
		order, diffs[id] = append(order, id), string(diff)
		return nil
	}))
	if strings.Join(gitops.Names(order), " ") != strings.Join(gitops.Names(ids), " ") {
		t.Errorf("%q, want the order %q", order, ids)
	}
	for id, want := range map[gitops.OID]string{empty: "", first: "+1\n", second: " 1\n+" + string(first) + "\n"} {
		if !strings.HasSuffix(diffs[id], want) || want == "" && diffs[id] != "" {
			t.Errorf("%s: %q, want %q at the end", id, diffs[id], want)
		}
	}
	patches, err := w.PatchIDs(t.Context(), ids)
	gitopstest.Check(t, err)
	verbatim, err := w.VerbatimPatchIDs(t.Context(), ids, 1<<20)
	gitopstest.Check(t, err)
	for form, patches := range map[string]map[gitops.OID]string{"--stable": patches, "--verbatim": verbatim} {
		for _, id := range []gitops.OID{first, second} {
			if want, _, _ := strings.Cut(w.Run("-c", "alias.id=!git show "+string(id)+" | git patch-id "+form, "id"), " "); patches[id] != want || want == "" {
				t.Errorf("%s has the patch-id %s %q, want %q", id, form, patches[id], want)
			}
		}
		if patches[empty] != "" {
			t.Errorf("a commit without a change has the patch-id %s %q", form, patches[empty])
		}
	}
	if patches[second] == verbatim[second] {
		t.Error("white space is in neither form")
	}
}

// TestLargePatch reads the changes of several commits, of which one is larger than the limit. It alone has no entry.
func TestLargePatch(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	ids := []gitops.OID{w.CommitAll(gitopstest.Files{"a": "1\n"})}
	many := gitopstest.Files{}
	for n := range 200 {
		many[fmt.Sprint("many/", n)] = fmt.Sprint(n, "\n")
	}
	large := w.CommitAll(many)
	ids = append(ids, large, w.CommitAll(gitopstest.Files{"a": "2\n"}), w.CommitAll(gitopstest.Files{"a": "3\n"}))
	for limit := int64(10_000); limit < 10_100; limit += 7 {
		patches, err := w.VerbatimPatchIDs(t.Context(), ids, limit)
		gitopstest.Check(t, err)
		for _, id := range ids {
			if got := patches[id]; (got == "") != (id == large) {
				t.Fatalf("limit %d: %s has the patch-id %q", limit, id, got)
			}
		}
		if err := w.ShowTrees(t.Context(), io.Discard, false, limit, ids[0]+"^{tree}", large+"^{tree}"); !errors.Is(err, gitops.ErrLargePatch) {
			t.Fatalf("limit %d: the difference of the trees: %v", limit, err)
		}
	}
}

// TestPatchIDsOfMissingTree reports an error once.
func TestPatchIDsOfMissingTree(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	id := w.CommitAll(gitopstest.Files{"a": "1\n"})
	tree := w.Run("rev-parse", string(id)+"^{tree}")
	gitopstest.Check(t, os.Remove(filepath.Join(w.GitDir, "objects", tree[:2], tree[2:])))
	_, err := w.PatchIDs(t.Context(), []gitops.OID{id})
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "patch-id") {
		t.Errorf("%v", err)
	}
}

// TestStatsOfMissingCommit tells a commit that is missing from one that changes nothing.
func TestStatsOfMissingCommit(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	id := w.CommitAll(gitopstest.Files{"a": "1\n"})
	w.Run("commit", "-q", "--allow-empty", "-m", "nothing")
	empty := gitops.OID(w.Run("rev-parse", "HEAD"))
	for commit, want := range map[gitops.OID]int{id: 1, empty: 0} {
		if files, err := w.Stats(t.Context(), commit); err != nil || len(files) != want {
			t.Errorf("%s: %v, %v", commit, files, err)
		}
		if files, err := w.Stats(t.Context(), commit, "b"); err != nil || len(files) > 0 {
			t.Errorf("%s at b: %v, %v", commit, files, err)
		}
	}
	gitopstest.Check(t, os.Remove(filepath.Join(w.GitDir, "objects", string(id[:2]), string(id[2:]))))
	if files, err := w.Stats(t.Context(), id); err == nil {
		t.Errorf("a missing commit has the files %v", files)
	}
}
