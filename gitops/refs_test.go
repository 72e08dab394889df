package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestUpdateRefsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	a, b := w.CommitAll(gitopstest.Files{"a": "1"}), w.CommitAll(gitopstest.Files{"a": "2"})
	set := func() {
		w.Run("update-ref", "refs/t/is", string(a))
		w.Run("update-ref", "-d", "refs/t/new")
	}
	for name, c := range map[string]struct {
		update gitops.RefUpdate
		want   gitops.OID // empty: refused
		ok     bool
	}{
		"create":             {gitops.RefUpdate{Ref: "refs/t/new", Old: "", New: b}, b, true},
		"update":             {gitops.RefUpdate{Ref: "refs/t/is", Old: a, New: b}, b, true},
		"update to the same": {gitops.RefUpdate{Ref: "refs/t/is", Old: a, New: a}, a, true},
		"delete":             {gitops.RefUpdate{Ref: "refs/t/is", Old: a, New: ""}, "", true},
		"verify absent":      {gitops.RefUpdate{Ref: "refs/t/new", Old: "", New: ""}, "", true},
		"create what is":     {gitops.RefUpdate{Ref: "refs/t/is", Old: "", New: b}, a, false},
		"update from other":  {gitops.RefUpdate{Ref: "refs/t/is", Old: b, New: a}, a, false},
		"update what is not": {gitops.RefUpdate{Ref: "refs/t/new", Old: a, New: b}, "", false},
		"delete other":       {gitops.RefUpdate{Ref: "refs/t/is", Old: b, New: ""}, a, false},
		"delete what is not": {gitops.RefUpdate{Ref: "refs/t/new", Old: a, New: ""}, "", false},
		"verify what is":     {gitops.RefUpdate{Ref: "refs/t/is", Old: "", New: ""}, a, false},
		"no such object":     {gitops.RefUpdate{Ref: "refs/t/is", Old: a, New: gitops.OID(strings.Repeat("ab", 20))}, a, false},
		"below a ref":        {gitops.RefUpdate{Ref: "refs/t/is/below", Old: "", New: b}, "", false},
		"bad name":           {gitops.RefUpdate{Ref: "refs/t/..", Old: "", New: b}, "", false},
	} {
		set()
		before := w.Run("for-each-ref")
		err := w.UpdateRefs(t.Context(), "test", gitops.RefUpdate{Ref: "refs/t/first", Old: "", New: b}, c.update, gitops.RefUpdate{"refs/t/last", "", b})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if !c.ok {
			if !errors.Is(err, gitops.ErrRefMoved) {
				t.Errorf("%s: %v, want ErrRefMoved", name, err)
			}
			if after := w.Run("for-each-ref"); after != before {
				t.Errorf("%s: refs are\n%s\nwere\n%s", name, after, before)
			}
			continue
		}
		if got := w.At(c.update.Ref); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		gitopstest.Check(t, w.UpdateRefs(t.Context(), "test", gitops.RefUpdate{Ref: "refs/t/first", Old: b, New: ""}, gitops.RefUpdate{"refs/t/last", b, ""}))
	}
	w.NothingLeft()
}

func TestUpdateRefsOfPackedRefsAndReflog(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t, "--object-format=sha256")
	a, b := w.CommitAll(gitopstest.Files{"a": "1"}), w.CommitAll(gitopstest.Files{"a": "2"})
	w.Run("update-ref", "refs/t/x", string(a))
	w.Run("pack-refs", "--all")
	gitopstest.Check(t, w.UpdateRefs(t.Context(), "why it moved", gitops.RefUpdate{Ref: "refs/t/x", Old: a, New: ""}, gitops.RefUpdate{"refs/heads/main", b, a}))
	if got := w.At("refs/t/x"); got != "" {
		t.Errorf("refs/t/x is at %s", got)
	}
	if log := w.Run("reflog", "-1", "main"); !strings.HasSuffix(log, "why it moved") {
		t.Errorf("reflog says %q", log)
	}
	if log := w.Run("reflog", "-1", "HEAD"); !strings.HasSuffix(log, "why it moved") {
		t.Errorf("HEAD's reflog says %q", log)
	}
}

func TestUpdateRefsWithManyRefs(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	a := w.CommitAll(gitopstest.Files{"a": "1"})
	var updates []gitops.RefUpdate
	for i := range 1000 {
		updates = append(updates, gitops.RefUpdate{Ref: fmt.Sprintf("refs/t/%064d", i), New: a})
	}
	gitopstest.Check(t, w.UpdateRefs(t.Context(), "", updates...))
	refs, err := w.Refs(t.Context(), "refs/t")
	if err != nil || len(refs) != len(updates) {
		t.Errorf("%d refs, %v", len(refs), err)
	}
}

// Whoever cancels leaves no ref locked.
func TestCancelledTransactionUnlocks(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	a, b := w.CommitAll(gitopstest.Files{"a": "1"}), w.CommitAll(gitopstest.Files{"a": "2"})
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := w.PrepareRefs(ctx, "", []gitops.RefUpdate{{"refs/heads/main", b, a}})
	gitopstest.Check(t, err)
	cancel()
	gitopstest.Check(t, tx.Commit())
	if got := w.At("refs/heads/main"); got != a {
		t.Errorf("main is at %s, want %s", got, a)
	}
	w.NothingLeft()
	if err := w.UpdateRefs(ctx, "", gitops.RefUpdate{Ref: "refs/heads/main", Old: a, New: b}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	tx, err = w.PrepareRefs(t.Context(), "", []gitops.RefUpdate{{"refs/heads/main", a, b}})
	gitopstest.Check(t, err)
	tx.Abort()
	w.NothingLeft()
}

func TestRefs(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	a := w.CommitAll(gitopstest.Files{"a": "1"})
	for _, ref := range []string{"refs/t/a", "refs/t/b/c", "refs/tt/x", "refs/t/*"} {
		if ref != "refs/t/*" {
			w.Run("update-ref", ref, string(a))
		}
	}
	got, err := w.Refs(t.Context(), "refs/t")
	if want := map[string]gitops.OID{"refs/t/a": a, "refs/t/b/c": a}; err != nil || !maps.Equal(got, want) {
		t.Errorf("Refs: %v, %v, want %v", got, err, want)
	}
	if got := w.At("refs/t/b"); got != "" {
		t.Errorf("refs/t/b is %s: a folder is not a ref", got)
	}
}

// Refs that this package reads itself are the refs that git lists.
func TestRefsAreThoseOfGit(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		a, b := w.CommitAll(gitopstest.Files{"a": "1"}), w.CommitAll(gitopstest.Files{"a": "2"})
		same := func(step string, names ...string) {
			t.Helper()
			got, err := w.Refs(t.Context(), names...)
			want, errGit := w.Git.Refs(t.Context(), names...)
			if err != nil || errGit != nil || !maps.Equal(got, want) {
				t.Errorf("%s: Refs(%q) = %v, %v; git lists %v, %v", step, names, got, err, want, errGit)
			}
		}
		all := func(step string) {
			t.Helper()
			for _, names := range [][]string{{"refs"}, {"refs/t"}, {"refs/t/"}, {"refs/t/a", "refs/heads/main"}, {"refs/t/a/below"}, {"refs/none"}, {"refs/t/*"}, {"main"}, {"refs/t/b", "refs/t"}} {
				same(step, names...)
			}
		}
		file := func(name, content string) {
			t.Helper()
			gitopstest.Check(t, os.WriteFile(filepath.Join(w.CommonDir, name), []byte(content), 0o600))
		}
		all("branch only")
		w.Run("update-ref", "refs/t/a", string(a))
		w.Run("update-ref", "refs/t/b/c", string(a))
		w.Run("update-ref", "refs/tt/x", string(a))
		w.Run("tag", "-m", "tag", "annotated")
		all("files")
		w.Run("pack-refs", "--all")
		all("packed")
		w.Run("update-ref", "refs/t/a", string(b))
		w.Run("update-ref", "-d", "refs/t/b/c")
		all("moved and deleted after packing")
		file("refs/t/a.lock", "")
		file("refs/t/empty", "")
		all("a lock, and a file without content")
		gitopstest.Check(t, os.Remove(filepath.Join(w.CommonDir, "refs/t/empty")))
		file("refs/t/zero", strings.Repeat("0", len(a))+"\n")
		all("a ref without object")
		file("refs/t/zero", strings.Repeat("1", len(a))+"\n")
		all("a missing object")
		w.Run("symbolic-ref", "refs/t/symbolic", "refs/heads/main")
		all("a symbolic ref")
		gitopstest.Check(t, os.Symlink("a", filepath.Join(w.CommonDir, "refs/t/link")))
		all("a link")
	}
}

// TestLastMoved checks how the last entry of a reflog shows who moved the ref.
func TestLastMoved(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	a, b := w.CommitAll(gitopstest.Files{"a": "1"}), w.CommitAll(gitopstest.Files{"a": "2"})
	const branch = "refs/heads/main"
	expect := func(to gitops.OID, want bool) {
		t.Helper()
		if got := w.LastMoved(branch, to, "ours: "); got != want {
			t.Errorf("LastMoved(%s) = %v\n%s", to, got, w.Run("reflog", "main"))
		}
	}
	expect(b, false)
	gitopstest.Check(t, w.UpdateRefs(t.Context(), "ours: back", gitops.RefUpdate{Ref: branch, Old: b, New: a}))
	expect(a, true)
	expect(b, false)
	w.Run("reset", "-q", "--soft", string(b))
	w.Run("reset", "-q", "--soft", string(a))
	expect(a, false)
	gitopstest.Check(t, w.UpdateRefs(t.Context(), "ours: forth", gitops.RefUpdate{Ref: branch, Old: a, New: b}))
	expect(b, true)
	w.Run("reflog", "expire", "--expire=all", "--all")
	expect(b, false)
	if w.LastMoved("refs/heads/none", b, "") {
		t.Error("a branch without a reflog was moved")
	}
}
