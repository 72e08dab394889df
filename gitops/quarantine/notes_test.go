package quarantine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// noted is a repository whose notes are written through bridges.
type noted struct {
	*world
	q *Store
}

const notesRef = "refs/notes/airlock"

func newNoted(t *testing.T, initArgs ...string) *noted {
	w := newWorld(t, initArgs...)
	q, err := Create(t.Context(), w.Repository, filepath.Join(w.State, "quarantine"))
	gitopstest.Check(t, err)
	return &noted{w, q}
}

// draft drafts notes, copies their objects, and returns the size of these objects in bytes.
func (n *noted) draft(notes ...Note) (old, drafted gitops.OID, size int) {
	n.T.Helper()
	ctx := n.T.Context()
	b, err := n.q.Bridge(n.Repository, nil, filepath.Join(n.State, "bridge"))
	gitopstest.Check(n.T, err)
	defer b.Close()
	inside := n.q.Inspect(ctx)
	look := b.Inspect(ctx, inside)
	defer inside.Close()
	defer look.Close()
	old = n.At(notesRef)
	drafted, made, err := b.DraftNotes(ctx, look, old, "Ada <ada@example.org>", notes)
	gitopstest.Check(n.T, err)
	gitopstest.Check(n.T, b.Give(ctx, look, "", nil, made...))
	for _, o := range b.made {
		size += len(o.Content)
	}
	return old, drafted, size
}

// put calls draft and moves the ref.
func (n *noted) put(notes ...Note) (size int) {
	n.T.Helper()
	old, drafted, size := n.draft(notes...)
	if n.At(notesRef) != old {
		n.T.Error("the notes moved")
	}
	gitopstest.Check(n.T, n.UpdateRefs(n.T.Context(), "", gitops.RefUpdate{Ref: notesRef, Old: old, New: drafted}))
	if parents := strings.Fields(n.Run("rev-list", "--parents", "-n1", notesRef))[1:]; strings.Join(parents, "") != string(old) {
		n.T.Errorf("the notes' commit has the parents %v, want %q", parents, old)
	}
	return size
}

// show returns a note as git shows it.
func (n *noted) show(c gitops.OID) string {
	text, err := gitopstest.TryCommand(n.Top, nil, "notes", "--ref=airlock", "show", string(c))
	if err != nil {
		return "none"
	}
	return text
}

func TestDraftNotes(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newNoted(t, "--object-format="+format)
			var commits []gitops.OID
			for range 5 {
				w.CommitAll(gitopstest.Files{})
				w.Run("commit", "-q", "--amend", "--allow-empty", "-m", fmt.Sprint(len(commits)))
				commits = append(commits, gitops.OID(w.Run("rev-parse", "HEAD")))
			}
			text := "subject\n\nAirlock-Version: 1\nü \"q\" \\\n"
			w.put(Note{commits[0], text})
			w.Run("notes", "--ref=airlock", "add", "-m", "by hand", string(commits[1]))
			w.put(Note{commits[2], "two\n"}, Note{commits[3], "no newline"}, Note{commits[0], text})
			w.put(Note{commits[3], "changed\n"}, Note{commits[2], ""}, Note{commits[4], ""})
			for n, want := range []string{strings.TrimSuffix(text, "\n"), "by hand", "none", "changed", "none"} {
				if got := w.show(commits[n]); got != want {
					t.Errorf("note %d is %q, want %q", n, got, want)
				}
			}
			if old, drafted, _ := w.draft(Note{commits[4], ""}); old != drafted {
				t.Error("nothing changes, and there is a commit of it")
			}
			w.put(Note{commits[0], ""}, Note{commits[1], ""}, Note{commits[3], ""})
			if got := w.Run("ls-tree", notesRef); got != "" {
				t.Errorf("left: %s", got)
			}
			w.put(Note{commits[0], "again\n"})
			w.Run("fsck", "--no-dangling", "--strict")
		})
	}
}

// many creates commits without files, and returns their names.
func (n *noted) many(count int) []gitops.OID {
	n.T.Helper()
	var stream strings.Builder
	for i := range count {
		fmt.Fprintf(&stream, "commit refs/heads/many\ncommitter A <a@x> %d +0000\ndata 0\n\n", i)
	}
	gitopstest.Input(n.T, n.Top, nil, stream.String(), "fast-import", "--quiet")
	var ids []gitops.OID
	for _, id := range strings.Fields(n.Run("rev-list", "many")) {
		ids = append(ids, gitops.OID(id))
	}
	return ids
}

// Git finds each of many notes, git's own commands can continue from them, and the cost of another note stays the
// same.
func TestDraftNotesInBulk(t *testing.T) {
	t.Parallel()
	const n = 3 * notesInFolder
	for name, start := range map[string]func(w *noted, ids []gitops.OID){
		"none before": func(*noted, []gitops.OID) {},
		"git's before": func(w *noted, ids []gitops.OID) {
			for _, id := range ids[:3] {
				w.Run("notes", "--ref=airlock", "add", "-m", "by hand", string(id))
			}
		},
		"beside what is none": func(w *noted, ids []gitops.OID) {
			w.Run("update-ref", notesRef, w.Run("commit-tree", "-m", "m", string(gitops.OID(gitopstest.Input(t, w.Top, nil,
				"100644 blob "+string(w.Blob("x"))+"\tREADME\n", "mktree")))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNoted(t)
			w.T = t
			w.CommitAll(gitopstest.Files{"a": "1"})
			ids := w.many(n)
			start(w, ids)
			var notes []Note
			for _, id := range ids[1:] {
				notes = append(notes, Note{id, "note of " + string(id)})
			}
			w.put(notes...)
			for _, id := range ids[1:20] {
				if got := w.show(id); got != "note of "+string(id) {
					t.Errorf("note %q", got)
				}
			}
			if size := w.put(Note{ids[0], "the last\n"}); size > 30_000 {
				t.Errorf("one more note makes %d bytes of objects", size)
			}
			if got := len(strings.Split(w.Run("notes", "--ref=airlock", "list"), "\n")); got != n {
				t.Errorf("%d notes, want %d", got, n)
			}
			w.Run("notes", "--ref=airlock", "append", "-m", "by hand", string(ids[5]))
			w.put(Note{ids[6], ""})
			if got := w.show(ids[5]); !strings.HasPrefix(got, "note of "+string(ids[5])) || !strings.HasSuffix(got, "by hand") {
				t.Errorf("note %q", got)
			}
			if got := w.show(ids[6]); got != "none" {
				t.Errorf("removed note %q", got)
			}
			w.Run("fsck", "--no-dangling", "--strict")
		})
	}
}
