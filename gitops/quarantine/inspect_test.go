package quarantine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

func TestInspector(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			i := newInner(t, gitopstest.Files{"a": "0123456789", "d/b": "2", "l": gitopstest.LinkTo + "a", "x": gitopstest.Execute + "3", "empty": ""}, "--object-format="+format)
			look := i.q.Inspect(t.Context())
			defer look.Close()
			entries, err := look.Tree(t.Context(), gitops.OID(i.Run("rev-parse", "HEAD^{tree}")))
			gitopstest.Check(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.Mode.String()+" "+e.Name)
				if want := i.Run("rev-parse", "HEAD:"+e.Name); string(e.OID) != want {
					t.Errorf("%s is %s, want %s", e.Name, e.OID, want)
				}
			}
			want := "100644 a, 040000 d, 100644 empty, 100644 history, 120000 l, 100755 x"
			if strings.Join(got, ", ") != want {
				t.Errorf("entries %q, want %q", got, want)
			}
			a := gitops.OID(i.Run("rev-parse", "HEAD:a"))
			for limit, want := range map[int64]string{0: "", 4: "0123", 10: "0123456789", 100: "0123456789"} {
				head, size, err := look.Blob(t.Context(), a, limit)
				if err != nil || string(head) != want || size != 10 {
					t.Errorf("limit %d: %q, %d, %v", limit, head, size, err)
				}
			}
			if size, err := look.Size(t.Context(), a); size != 10 || err != nil {
				t.Errorf("Size: %d, %v", size, err)
			}
			if head, size, err := look.Blob(t.Context(), gitops.OID(i.Run("rev-parse", "HEAD:empty")), 10); len(head) != 0 || size != 0 || err != nil {
				t.Errorf("empty blob: %q, %d, %v", head, size, err)
			}
		})
	}
}

// An inspector can be used again after it has refused an object.
func TestInspectorRefuses(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1", "d/b": "2"})
	look := i.q.Inspect(t.Context())
	defer look.Close()
	tree, blob := gitops.OID(i.Run("rev-parse", "HEAD^{tree}")), gitops.OID(i.Run("rev-parse", "HEAD:a"))
	if _, err := look.Tree(t.Context(), blob); !isInvalid(err) {
		t.Errorf("a blob as a tree: %v, want *Invalid", err)
	}
	if _, _, err := look.Blob(t.Context(), tree, 10); !isInvalid(err) {
		t.Errorf("a tree as a blob: %v, want *Invalid", err)
	}
	for _, id := range []gitops.OID{"", "HEAD", gitops.OID(strings.Repeat("ab", 20)), blob + "\ninfo " + blob, i.outer.Blob("not taken")} {
		if _, _, err := look.Blob(t.Context(), id, 10); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
	if head, _, err := look.Blob(t.Context(), blob, 10); string(head) != "1" || err != nil {
		t.Errorf("afterwards: %q, %v", head, err)
	}
	gitopstest.Check(t, look.Close())
	if _, err := look.Size(t.Context(), blob); err == nil {
		t.Error("no error after Close")
	}
}

func TestInspectorEndsWithItsContext(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	bad := *i.q
	bad.Git = bad.With("GIT_DIR=/nonexistent")
	look := bad.Inspect(t.Context())
	defer look.Close()
	for range 2 {
		if _, err := look.Size(t.Context(), gitops.OID(strings.Repeat("ab", 20))); err == nil {
			t.Error("no error without a repository")
		}
	}
}

// The cache of an inspector stays small even for trees with long names.
func TestInspectorRemembersLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blob := w.Blob("x")
	look := Inspect(t.Context(), w.Git)
	defer look.Close()
	for n := range 40 {
		line := fmt.Sprintf("100644 blob %s\t%d%s\n", blob, n, strings.Repeat("x", largestRead-1024))
		_, err := look.Tree(t.Context(), gitops.OID(gitopstest.Input(t, w.Top, nil, line, "mktree")))
		gitopstest.Check(t, err)
	}
	held := 0
	for _, generation := range []map[gitops.OID]sized[readObject]{look.read.young, look.read.old} {
		for _, k := range generation {
			for _, e := range k.value.entries {
				held += len(e.Name)
			}
		}
	}
	if held > 2*readKept {
		t.Errorf("%d bytes of names are held, more than %d", held, 2*readKept)
	}
}

// A walk refuses names that no file system accepts before it continues, and more entries than it may hold.
func TestWalkRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blob := w.Blob("x")
	mktree := func(text string) gitops.OID { return gitops.OID(gitopstest.Input(t, w.Top, nil, text, "mktree")) }
	commit := func(tree gitops.OID) Link {
		return Link{Commit: gitops.OID(w.Run("commit-tree", "-m", "x", string(tree)))}
	}
	var many strings.Builder
	for n := range 60 {
		fmt.Fprintf(&many, "100644 blob %s\tf%d\n", blob, n)
	}
	deep := mktree(many.String())
	deep = mktree(fmt.Sprintf("%s040000 tree %s\td\n", many.String(), deep))
	limits := inner.DefaultLimits
	limits.Paths, limits.Entries = 100, 100
	for want, tree := range map[string]gitops.OID{
		"airlock.limit.component": mktree(fmt.Sprintf("100644 blob %s\t%s\n", blob, strings.Repeat("x", 256))),
		"more than 100 entries":   deep,
	} {
		look := Inspect(t.Context(), w.Git)
		err := look.Walk(t.Context(), []Link{commit(tree)}, limits, nil)
		if !isInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
		gitopstest.Check(t, look.Close())
	}
}
