package gitops

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestInspectorDiff wants what git diff-tree says, for every pair of trees.
func TestInspectorDiff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var trees []OID
	for _, f := range []files{
		{"a": "1", "a.b": "2", "a-b": "3", "d/x": "4", "d/e/y": "5", "l": linkTo + "a"},
		{"a": absent, "a/b/c": "file to folder", "a0": "beside it"},
		{"a": "folder to file", "d/e": absent, "d/e.x": "6", "l": "link to file"},
		{"d/x": execute + "4", "a.b": linkTo + "d"},
		{"\xff\xfe": "bytes", "sp ace/\t": "tab"},
		{"d": absent, "e/f/g/h": "4"},
	} {
		trees = append(trees, OID(w.git("rev-parse", string(w.commit(f))+"^{tree}")))
	}
	sub := OID(input(t, w.Top, nil, "160000 commit "+strings.Repeat("ab", 20)+"\tsub\n040000 tree "+string(trees[0])+"\told\n", "mktree", "--missing"))
	empty := OID(input(t, w.Top, nil, "", "mktree"))
	trees = append(trees, sub, empty)
	look := w.Inspect(t.Context())
	defer look.Close()
	for _, old := range trees {
		for _, new := range trees {
			want, err := w.Diff(t.Context(), old, new)
			check(t, err)
			got, err := look.Diff(t.Context(), old, new, DefaultLimits)
			check(t, err)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", sortedChanges(want)) {
				t.Errorf("%s..%s:\n%q, git says\n%q", old, new, got, want)
			}
		}
		all, err := w.Diff(t.Context(), empty, old)
		check(t, err)
		got, err := look.Diff(t.Context(), "", old, DefaultLimits)
		check(t, err)
		if !slices.Equal(got, sortedChanges(all)) {
			t.Errorf("%s from nothing: %q", old, got)
		}
	}
}

func sortedChanges(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

func TestInspectorCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.commit(files{"a": "1"})
	second := w.commit(files{"a": "2"})
	look := w.Inspect(t.Context())
	defer look.Close()
	c, err := look.Commit(t.Context(), second)
	check(t, err)
	if string(c.Tree) != w.git("rev-parse", "HEAD^{tree}") || !slices.Equal(c.Parents, []OID{first}) || string(c.Message) != "commit\n" {
		t.Errorf("%+v", c)
	}
	if _, err := look.Commit(t.Context(), c.Tree); !isInvalid(err) {
		t.Errorf("a tree as a commit: %v, want *Invalid", err)
	}
}
