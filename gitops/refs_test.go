package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestUpdateRefsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.commit(files{"a": "1"}), w.commit(files{"a": "2"})
	set := func() {
		w.git("update-ref", "refs/t/is", string(a))
		w.git("update-ref", "-d", "refs/t/new")
	}
	for name, c := range map[string]struct {
		update RefUpdate
		want   OID // empty: refused
		ok     bool
	}{
		"create":             {RefUpdate{"refs/t/new", "", b}, b, true},
		"update":             {RefUpdate{"refs/t/is", a, b}, b, true},
		"update to the same": {RefUpdate{"refs/t/is", a, a}, a, true},
		"delete":             {RefUpdate{"refs/t/is", a, ""}, "", true},
		"verify absent":      {RefUpdate{"refs/t/new", "", ""}, "", true},
		"create what is":     {RefUpdate{"refs/t/is", "", b}, a, false},
		"update from other":  {RefUpdate{"refs/t/is", b, a}, a, false},
		"update what is not": {RefUpdate{"refs/t/new", a, b}, "", false},
		"delete other":       {RefUpdate{"refs/t/is", b, ""}, a, false},
		"delete what is not": {RefUpdate{"refs/t/new", a, ""}, "", false},
		"verify what is":     {RefUpdate{"refs/t/is", "", ""}, a, false},
		"no such object":     {RefUpdate{"refs/t/is", a, OID(strings.Repeat("ab", 20))}, a, false},
		"below a ref":        {RefUpdate{"refs/t/is/below", "", b}, "", false},
		"bad name":           {RefUpdate{"refs/t/..", "", b}, "", false},
	} {
		set()
		before := w.git("for-each-ref")
		err := w.UpdateRefs(t.Context(), "test", RefUpdate{"refs/t/first", "", b}, c.update, RefUpdate{"refs/t/last", "", b})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if !c.ok {
			if !errors.Is(err, ErrRefMoved) {
				t.Errorf("%s: %v, want ErrRefMoved", name, err)
			}
			if after := w.git("for-each-ref"); after != before {
				t.Errorf("%s: refs are\n%s\nwere\n%s", name, after, before)
			}
			continue
		}
		if got := w.ref(c.update.Ref); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		check(t, w.UpdateRefs(t.Context(), "test", RefUpdate{"refs/t/first", b, ""}, RefUpdate{"refs/t/last", b, ""}))
	}
	w.nothingLeft()
}

func TestUpdateRefsOfPackedRefsAndReflog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--object-format=sha256")
	a, b := w.commit(files{"a": "1"}), w.commit(files{"a": "2"})
	w.git("update-ref", "refs/t/x", string(a))
	w.git("pack-refs", "--all")
	check(t, w.UpdateRefs(t.Context(), "why it moved", RefUpdate{"refs/t/x", a, ""}, RefUpdate{"refs/heads/main", b, a}))
	if got := w.ref("refs/t/x"); got != "" {
		t.Errorf("refs/t/x is at %s", got)
	}
	if log := w.git("reflog", "-1", "main"); !strings.HasSuffix(log, "why it moved") {
		t.Errorf("reflog says %q", log)
	}
	if log := w.git("reflog", "-1", "HEAD"); !strings.HasSuffix(log, "why it moved") {
		t.Errorf("HEAD's reflog says %q", log)
	}
}

func TestUpdateRefsWithManyRefs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.commit(files{"a": "1"})
	var updates []RefUpdate
	for i := range 1000 {
		updates = append(updates, RefUpdate{Ref: fmt.Sprintf("refs/t/%064d", i), New: a})
	}
	check(t, w.UpdateRefs(t.Context(), "", updates...))
	refs, err := w.Refs(t.Context(), "refs/t")
	if err != nil || len(refs) != len(updates) {
		t.Errorf("%d refs, %v", len(refs), err)
	}
}

// Whoever cancels leaves no ref locked.
func TestCancelledTransactionUnlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.commit(files{"a": "1"}), w.commit(files{"a": "2"})
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := w.PrepareRefs(ctx, "", []RefUpdate{{"refs/heads/main", b, a}})
	check(t, err)
	cancel()
	check(t, tx.Commit())
	if got := w.ref("refs/heads/main"); got != a {
		t.Errorf("main is at %s, want %s", got, a)
	}
	w.nothingLeft()
	if err := w.UpdateRefs(ctx, "", RefUpdate{"refs/heads/main", a, b}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	tx, err = w.PrepareRefs(t.Context(), "", []RefUpdate{{"refs/heads/main", a, b}})
	check(t, err)
	tx.Abort()
	w.nothingLeft()
}

func TestRefs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.commit(files{"a": "1"})
	for _, ref := range []string{"refs/t/a", "refs/t/b/c", "refs/tt/x", "refs/t/*"} {
		if ref != "refs/t/*" {
			w.git("update-ref", ref, string(a))
		}
	}
	got, err := w.Refs(t.Context(), "refs/t")
	if want := map[string]OID{"refs/t/a": a, "refs/t/b/c": a}; err != nil || !maps.Equal(got, want) {
		t.Errorf("Refs: %v, %v, want %v", got, err, want)
	}
	if got := w.ref("refs/t/b"); got != "" {
		t.Errorf("refs/t/b is %s: a folder is no ref", got)
	}
}
