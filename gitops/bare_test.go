package gitops_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestBareReadsNoAttributes merges and shows commits of a repository whose tree has attributes for all files. With a marker of such a size,
// git merge-tree writes past its memory.
func TestBareReadsNoAttributes(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	base := w.CommitAll(gitopstest.Files{"a": "1\n2\n3\n"})
	ours := w.CommitAll(gitopstest.Files{"a": "1\nours\n3\n", ".gitattributes": "* conflict-marker-size=1431655765 -diff\n"})
	theirs := w.Built(base, gitopstest.Files{"a": "1\ntheirs\n3\n", ".gitattributes": "* conflict-marker-size=1431655765 -diff\n"})
	named := *w.Repository // as OpenCurrent returns it with GIT_DIR and GIT_WORK_TREE
	named.Git = w.With("GIT_DIR="+w.GitDir, "GIT_WORK_TREE="+w.Top)
	w.Run("config", "merge.renormalize", "true")
	for _, r := range []*gitops.Repository{w.Repository, &named} {
		tree, conflicts, err := r.Bare().WithMemory(1<<30).MergeTree(t.Context(), ours, theirs)
		if err != nil || len(conflicts) != 1 || conflicts[0].Path != "a" {
			t.Fatalf("conflicts %v, %v", conflicts, err)
		}
		if got, want := w.Run("cat-file", "blob", string(tree)+":a"), "1\n<<<<<<< "; !strings.HasPrefix(got, want) {
			t.Errorf("%.60q, want %q", got, want)
		}
		var out bytes.Buffer
		if err := r.ShowChange(t.Context(), &out, false, false, ours, "a"); err != nil || !strings.Contains(out.String(), "\n+ours\n") {
			t.Errorf("the change is shown as %q, %v", out.String(), err)
		}
	}
}

// TestMergeInLittleMemory merges a file that is larger than the memory which git may allocate.
func TestMergeInLittleMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no limit for another process")
	}
	w := gitopstest.New(t)
	var text strings.Builder
	for i := range 1 << 17 {
		fmt.Fprintf(&text, "line %d of a large file\n", i)
	}
	large := text.String()
	base := w.CommitAll(gitopstest.Files{"a": large})
	ours, theirs := w.Built(base, gitopstest.Files{"a": "ours\n" + large}), w.Built(base, gitopstest.Files{"a": "theirs\n" + large})
	if _, _, err := w.Bare().WithMemory(4<<20).MergeTree(t.Context(), ours, theirs); !gitops.Crashed(err) {
		t.Errorf("%v, want an error that counts as a crash", err)
	}
	if _, conflicts, err := w.Bare().WithMemory(1<<30).MergeTree(t.Context(), ours, theirs); err != nil || len(conflicts) != 1 {
		t.Errorf("%q, %v", conflicts, err)
	}
}
