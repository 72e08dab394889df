package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
	tx, err := w.prepareRefs(ctx, "", []RefUpdate{{"refs/heads/main", b, a}})
	check(t, err)
	cancel()
	check(t, tx.commit())
	if got := w.ref("refs/heads/main"); got != a {
		t.Errorf("main is at %s, want %s", got, a)
	}
	w.nothingLeft()
	if err := w.UpdateRefs(ctx, "", RefUpdate{"refs/heads/main", a, b}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	tx, err = w.prepareRefs(t.Context(), "", []RefUpdate{{"refs/heads/main", a, b}})
	check(t, err)
	tx.abort()
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

func TestDraftNotes(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			const ref, draft = "refs/notes/airlock", "refs/airlock/7f3a/draft"
			w := newWorld(t, "--object-format="+format)
			var commits []OID
			for range 5 {
				commits = append(commits, w.commit(files{}))
				w.git("commit", "-q", "--amend", "--allow-empty", "-m", fmt.Sprint(len(commits)))
				commits[len(commits)-1] = OID(w.git("rev-parse", "HEAD"))
			}
			w.git("update-ref", draft, string(commits[0])) // left by a crash
			show := func(c OID) string {
				text, err := tryCommand(w.Top, nil, "notes", "--ref=airlock", "show", string(c))
				if err != nil {
					return "none"
				}
				return text
			}
			put := func(notes ...Note) {
				t.Helper()
				before := w.ref(ref)
				old, drafted, err := w.DraftNotes(t.Context(), ref, draft, "Ada <ada@example.org>", notes)
				check(t, err)
				if w.ref(ref) != before || old != before {
					t.Errorf("the notes moved, or were built on %q", old)
				}
				check(t, w.UpdateRefs(t.Context(), "", RefUpdate{ref, old, drafted}))
				if parents := strings.Fields(w.git("rev-list", "--parents", "-n1", ref))[1:]; strings.Join(parents, "") != string(before) {
					t.Errorf("the notes' commit has the parents %v, want %q", parents, before)
				}
			}
			text := "subject\n\nAirlock-Version: 1\nü \"q\" \\\n"
			put(Note{commits[0], text})
			w.git("notes", "--ref=airlock", "add", "-m", "by hand", string(commits[1]))
			put(Note{commits[2], "two\n"}, Note{commits[3], "no newline"}, Note{commits[0], text})
			put(Note{commits[3], "changed\n"}, Note{commits[2], ""}, Note{commits[4], ""})
			for n, want := range []string{strings.TrimSuffix(text, "\n"), "by hand", "none", "changed", "none"} {
				if got := show(commits[n]); got != want {
					t.Errorf("note %d is %q, want %q", n, got, want)
				}
			}
			w.git("fsck", "--no-dangling")
		})
	}
}

func TestDraftNotesInBulk(t *testing.T) {
	t.Parallel()
	const n = 600 // beyond the number at which notes trees fan out
	w := newWorld(t)
	w.commit(files{"a": "1"})
	var stream strings.Builder
	for i := range n {
		fmt.Fprintf(&stream, "commit refs/heads/many\ncommitter A <a@x> %d +0000\ndata 0\n\n", i)
	}
	input(t, w.Top, nil, stream.String(), "fast-import", "--quiet")
	var notes []Note
	for _, id := range strings.Fields(w.git("rev-list", "many")) {
		notes = append(notes, Note{OID(id), "note of " + id})
	}
	old, drafted, err := w.DraftNotes(t.Context(), "refs/notes/airlock", "refs/d", "A <a@x>", notes)
	check(t, err)
	check(t, w.UpdateRefs(t.Context(), "", RefUpdate{"refs/notes/airlock", old, drafted}))
	if got := w.git("notes", "--ref=airlock", "show", "many~7"); got != "note of "+w.git("rev-parse", "many~7") {
		t.Errorf("note %q", got)
	}
	if got := len(strings.Split(w.git("notes", "--ref=airlock", "list"), "\n")); got != n {
		t.Errorf("%d notes, want %d", got, n)
	}
	if left, _ := filepath.Glob(filepath.Join(w.GitDir, "fast_import_crash_*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestDraftNotesOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(files{"a": "1"})
	if _, _, err := w.DraftNotes(t.Context(), "refs/notes/airlock", "refs/d", "A <a@x>", []Note{{OID(strings.Repeat("ab", 20)), "x"}}); err == nil {
		t.Error("a note on a commit that is not there: no error")
	}
}
