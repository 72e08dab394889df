package gitops

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestInspector(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			i := newInner(t, files{"a": "0123456789", "d/b": "2", "l": linkTo + "a", "x": execute + "3", "empty": ""}, "--object-format="+format)
			look := i.q.Inspect(t.Context())
			defer look.Close()
			entries, err := look.Tree(t.Context(), OID(i.git("rev-parse", "HEAD^{tree}")))
			check(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.Mode.String()+" "+e.Name)
				if want := i.git("rev-parse", "HEAD:"+e.Name); string(e.OID) != want {
					t.Errorf("%s is %s, want %s", e.Name, e.OID, want)
				}
			}
			want := "100644 a, 040000 d, 100644 empty, 100644 history, 120000 l, 100755 x"
			if strings.Join(got, ", ") != want {
				t.Errorf("entries %q, want %q", got, want)
			}
			a := OID(i.git("rev-parse", "HEAD:a"))
			for limit, want := range map[int64]string{0: "", 4: "0123", 10: "0123456789", 100: "0123456789"} {
				head, size, err := look.Blob(t.Context(), a, limit)
				if err != nil || string(head) != want || size != 10 {
					t.Errorf("limit %d: %q, %d, %v", limit, head, size, err)
				}
			}
			if size, err := look.Size(t.Context(), a); size != 10 || err != nil {
				t.Errorf("Size: %d, %v", size, err)
			}
			if head, size, err := look.Blob(t.Context(), OID(i.git("rev-parse", "HEAD:empty")), 10); len(head) != 0 || size != 0 || err != nil {
				t.Errorf("empty blob: %q, %d, %v", head, size, err)
			}
		})
	}
}

// What an inspector refuses leaves it ready for the next question.
func TestInspectorRefuses(t *testing.T) {
	t.Parallel()
	i := newInner(t, files{"a": "1", "d/b": "2"})
	look := i.q.Inspect(t.Context())
	defer look.Close()
	tree, blob := OID(i.git("rev-parse", "HEAD^{tree}")), OID(i.git("rev-parse", "HEAD:a"))
	if _, err := look.Tree(t.Context(), blob); !isInvalid(err) {
		t.Errorf("a blob as a tree: %v, want *Invalid", err)
	}
	if _, _, err := look.Blob(t.Context(), tree, 10); !isInvalid(err) {
		t.Errorf("a tree as a blob: %v, want *Invalid", err)
	}
	for _, id := range []OID{"", "HEAD", OID(strings.Repeat("ab", 20)), blob + "\ninfo " + blob, i.outer.blob("not taken")} {
		if _, _, err := look.Blob(t.Context(), id, 10); err == nil {
			t.Errorf("%q: no error", id)
		}
	}
	if head, _, err := look.Blob(t.Context(), blob, 10); string(head) != "1" || err != nil {
		t.Errorf("afterwards: %q, %v", head, err)
	}
	check(t, look.Close())
	if _, err := look.Size(t.Context(), blob); err == nil {
		t.Error("no error after Close")
	}
}

func TestInspectorEndsWithItsContext(t *testing.T) {
	t.Parallel()
	i := newInner(t, files{"a": "1"})
	bad := *i.q
	bad.Git = bad.With("GIT_DIR=/nonexistent")
	look := bad.Inspect(t.Context())
	defer look.Close()
	for range 2 {
		if _, err := look.Size(t.Context(), OID(strings.Repeat("ab", 20))); err == nil {
			t.Error("no error without a repository")
		}
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00"+strings.Repeat("h", 20)), false)
	f.Add([]byte("40000 d\x00"+strings.Repeat("h", 32)), true)
	f.Add([]byte("40000 d"), true)
	f.Fuzz(func(t *testing.T, content []byte, long bool) {
		hash := 20
		if long {
			hash = 32
		}
		entries, err := ParseTree(content, hash)
		if err != nil {
			return
		}
		again, err := TreeBytes(entries)
		if err != nil || !bytes.Equal(again, content) {
			t.Errorf("%q is written as %q, %v", content, again, err)
		}
	})
}

// However long the names in them are, what an inspector remembers of trees stays small.
func TestInspectorRemembersLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blob := w.blob("x")
	look := w.Inspect(t.Context())
	defer look.Close()
	for n := range 40 {
		line := fmt.Sprintf("100644 blob %s\t%d%s\n", blob, n, strings.Repeat("x", largestKept-1024))
		_, err := look.Tree(t.Context(), OID(input(t, w.Top, nil, line, "mktree")))
		check(t, err)
	}
	held := 0
	for _, generation := range []map[OID]known{look.known, look.older} {
		for _, k := range generation {
			for _, e := range k.entries {
				held += len(e.Name)
			}
		}
	}
	if held > 2*bytesKept {
		t.Errorf("%d bytes of names are held, more than %d", held, 2*bytesKept)
	}
}

// A walk refuses names that no file system takes before it goes on, and more entries on the way down than it may hold.
func TestWalkRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blob := w.blob("x")
	mktree := func(text string) OID { return OID(input(t, w.Top, nil, text, "mktree")) }
	commit := func(tree OID) Link { return Link{Commit: OID(w.git("commit-tree", "-m", "x", string(tree)))} }
	var many strings.Builder
	for n := range 60 {
		fmt.Fprintf(&many, "100644 blob %s\tf%d\n", blob, n)
	}
	deep := mktree(many.String())
	deep = mktree(fmt.Sprintf("%s040000 tree %s\td\n", many.String(), deep))
	limits := DefaultLimits
	limits.Paths, limits.Entries = 100, 100
	for want, tree := range map[string]OID{
		"airlock.limit.component": mktree(fmt.Sprintf("100644 blob %s\t%s\n", blob, strings.Repeat("x", 256))),
		"more than 100 entries":   deep,
	} {
		look := w.Inspect(t.Context())
		err := look.Walk(t.Context(), []Link{commit(tree)}, limits, nil)
		if !isInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
		check(t, look.Close())
	}
}
