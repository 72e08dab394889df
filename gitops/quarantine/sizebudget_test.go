package quarantine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// nested returns a tree of a hundred folders with a hundred folders each, and so on, eight levels deep. The last
// level contains the given entry.
func (w *world) nested(innermost gitops.OID, name string) gitops.OID {
	tree := innermost
	for range 8 {
		var entries strings.Builder
		for n := range 100 {
			fmt.Fprintf(&entries, "040000 tree %s\t%s%02d\n", tree, name, n)
		}
		tree = w.mktree(entries.String())
	}
	return tree
}

func (w *world) mktree(entries string) gitops.OID {
	return gitops.OID(gitopstest.Input(w.T, w.Top, nil, entries, "mktree"))
}

// bombs returns trees of a few kilobytes that describe more paths than fit in memory or can be listed.
func (w *world) bombs() map[string]gitops.OID {
	file := w.mktree("100644 blob " + string(w.Blob("x")) + "\tf\n")
	deep := file
	for range inner.DefaultLimits.Depth + 1 {
		deep = w.mktree("040000 tree " + string(deep) + "\td\n")
	}
	var files strings.Builder
	blob := w.Blob("x")
	for n := range 60_000 {
		fmt.Fprintf(&files, "100644 blob %s\t%05d\n", blob, n)
	}
	long := w.mktree(files.String())
	for range 15 {
		long = w.mktree("040000 tree " + string(long) + "\t" + strings.Repeat("n", 250) + "\n")
	}
	return map[string]gitops.OID{"files": w.nested(file, ""), "empty folders": w.nested(w.mktree(""), ""), "deep": deep, "long names": long}
}

// atOnce is how long a refusal may take. An idle machine needs less than a second, one with thirty busy processes twenty times as long, and the
// whole work minutes.
const atOnce = time.Minute

// soon checks that something is refused in time.
func soon(t *testing.T, what string, refuse func() error) {
	t.Helper()
	begun := time.Now()
	if err := refuse(); !isInvalid(err) {
		t.Errorf("%s: %v, want *Invalid", what, err)
	}
	if took := time.Since(begun); took > atOnce {
		t.Errorf("%s: refused after %s", what, took)
	}
}

func TestBombsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.CommitAll(gitopstest.Files{"a": "1"})
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	for name, tree := range w.bombs() {
		soon(t, name+": Diff", func() error {
			_, err := look.Diff(t.Context(), "", tree, inner.DefaultLimits)
			return err
		})
		commit := gitops.OID(w.Run("commit-tree", "-m", "bomb", "-p", string(base), string(tree)))
		soon(t, name+": Walk", func() error {
			return look.Walk(t.Context(), []Link{{commit, []gitops.OID{base}}}, inner.DefaultLimits, nil)
		})
		if name != "long names" {
			soon(t, name+": CheckFiles", func() error {
				_, err := look.CheckFiles(t.Context(), tree, inner.DefaultLimits)
				return err
			})
		}
		if c, err := look.Diff(t.Context(), tree, tree, inner.DefaultLimits); len(c) != 0 || err != nil {
			t.Errorf("%s, unchanged: %d changes, %v", name, len(c), err)
		}
	}
}

// A shared tree is read once, and counts at each place.
func TestListSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blob := w.Blob("x")
	within := w.mktree(fmt.Sprintf("100644 blob %s\ta\n100644 blob %s\tbb\n", blob, blob))
	other := w.mktree(fmt.Sprintf("100644 blob %s\ta\n", blob))
	tree := w.mktree(fmt.Sprintf("100644 blob %s\tf\n040000 tree %s\tp\n040000 tree %s\tq\n", blob, within, within))
	changed := w.mktree(fmt.Sprintf("100644 blob %s\tf\n040000 tree %s\tp\n040000 tree %s\tq\n", blob, other, within))
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	for name, c := range map[string]struct {
		old, new gitops.OID
		want     listSize
	}{
		"added":     {"", tree, listSize{files: 5, folders: 2, text: 1 + 2*len64("p/") + 2*len64("p/a") + 2*len64("p/bb")}},
		"removed":   {tree, "", listSize{files: 5, folders: 2, text: 1 + 2*len64("p/") + 2*len64("p/a") + 2*len64("p/bb")}},
		"changed":   {tree, changed, listSize{files: 1, folders: 1, text: len64("p/") + len64("p/bb")}},
		"unchanged": {tree, tree, listSize{}},
	} {
		got, err := look.sizeBudget(100, 10).change(t.Context(), c.old, c.new, 0)
		if got != c.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for most, heavy := range map[int64]bool{5: false, 4: true} {
		limits := inner.DefaultLimits
		limits.Entries = most
		if n, err := look.CheckFiles(t.Context(), tree, limits); isInvalid(err) != heavy || !heavy && n != 5 {
			t.Errorf("at most %d: %d files, %v", most, n, err)
		}
	}
	if _, err := look.CheckFiles(t.Context(), gitops.OID(strings.Repeat("1", 40)), inner.DefaultLimits); err == nil || isInvalid(err) {
		t.Errorf("files of what is missing: %v", err)
	}
}

func len64(s string) int64 { return int64(len(s)) }
