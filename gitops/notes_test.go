package gitops_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestNotesBesideGC writes notes while git gc removes all objects that no ref reaches. The notes stay whole.
func TestNotesBesideGC(t *testing.T) {
	const ref, rounds = "refs/notes/airlock-check", 15
	w := gitopstest.New(t)
	tip := w.CommitAll(gitopstest.Files{"a": "a"})
	done := make(chan error, 1)
	go func() {
		for n, tries := 0, 0; n < rounds; {
			from, err := w.Ref(t.Context(), ref)
			if err == nil {
				err = w.SetNote(t.Context(), gitops.NotesCommit{Ref: ref, From: from, Who: "A <a@example.org>", Message: "note"}, tip, fmt.Sprintf("%d\n", n))
			}
			switch {
			case err == nil:
				n, tries = n+1, 0
			case tries == 20:
				done <- err
				return
			default:
				tries++ // git gc has removed the pack before it had its name; a pack of the same second has the same one
				time.Sleep(200 * time.Millisecond)
			}
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			gitopstest.Check(t, err)
			running = false
		default:
			w.Run("gc", "-q", "--prune=now")
		}
	}
	w.Run("fsck", "--no-dangling", "--strict")
	notes, tips, err := w.NotesOn(t.Context(), map[string][]gitops.OID{ref: {tip}})
	gitopstest.Check(t, err)
	if notes[ref][tip] != fmt.Sprintf("%d\n", rounds-1) || tips[ref] == "" {
		t.Errorf("the note is %q, and the ref %q", notes[ref][tip], tips[ref])
	}
}
