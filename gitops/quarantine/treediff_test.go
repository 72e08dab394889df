package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// TestInspectorDiff compares the result with git diff-tree, for every pair of trees.
func TestInspectorDiff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var trees []gitops.OID
	for _, f := range []gitopstest.Files{
		{"a": "1", "a.b": "2", "a-b": "3", "d/x": "4", "d/e/y": "5", "l": gitopstest.LinkTo + "a"},
		{"a": gitopstest.Absent, "a/b/c": "file to folder", "a0": "beside it"},
		{"a": "folder to file", "d/e": gitopstest.Absent, "d/e.x": "6", "l": "link to file"},
		{"d/x": gitopstest.Execute + "4", "a.b": gitopstest.LinkTo + "d"},
		{"\xff\xfe": "bytes", "sp ace/\t": "tab"},
		{"d": gitopstest.Absent, "e/f/g/h": "4"},
	} {
		trees = append(trees, gitops.OID(w.Run("rev-parse", string(w.CommitAll(f))+"^{tree}")))
	}
	sub := gitops.OID(gitopstest.Input(t, w.Top, nil, "160000 commit "+strings.Repeat("ab", 20)+"\tsub\n040000 tree "+string(trees[0])+"\told\n", "mktree", "--missing"))
	empty := gitops.OID(gitopstest.Input(t, w.Top, nil, "", "mktree"))
	trees = append(trees, sub, empty)
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	for _, old := range trees {
		for _, new := range trees {
			want, err := w.Diff(t.Context(), old, new)
			gitopstest.Check(t, err)
			got, err := look.Diff(t.Context(), old, new, inner.DefaultLimits)
			gitopstest.Check(t, err)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", sortedChanges(want)) {
				t.Errorf("%s..%s:\n%q, git says\n%q", old, new, got, want)
			}
		}
		all, err := w.Diff(t.Context(), empty, old)
		gitopstest.Check(t, err)
		got, err := look.Diff(t.Context(), "", old, inner.DefaultLimits)
		gitopstest.Check(t, err)
		if !slices.Equal(got, sortedChanges(all)) {
			t.Errorf("%s from nothing: %q", old, got)
		}
	}
}

func sortedChanges(changes []gitops.Change) []gitops.Change {
	slices.SortStableFunc(changes, func(a, b gitops.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

func TestInspectorCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.CommitAll(gitopstest.Files{"a": "1"})
	second := w.CommitAll(gitopstest.Files{"a": "2"})
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	c, err := look.Commit(t.Context(), second)
	gitopstest.Check(t, err)
	if string(c.Tree) != w.Run("rev-parse", "HEAD^{tree}") || !slices.Equal(c.Parents, []gitops.OID{first}) || string(c.Message) != "commit\n" {
		t.Errorf("%+v", c)
	}
	if _, err := look.Commit(t.Context(), c.Tree); !isInvalid(err) {
		t.Errorf("a tree as a commit: %v, want *Invalid", err)
	}
}
