package promote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/review"
)

// wantNotes checks that the commits with a provenance note are those that have landed, that are pending, or that another branch has.
func (w *world) wantNotes(when string) {
	w.t.Helper()
	reached := strings.Fields(w.git("rev-list", "--glob="+w.record.Ref("pendin[g]"), "--branches", "^"+string(w.record.Base)))
	there := map[string]bool{}
	for _, id := range reached {
		there[id] = true
	}
	noted := w.notes()
	for id := range noted {
		if !there[string(id)] {
			w.t.Errorf("%s: %s has a note, but no branch has it and it is not pending", when, id)
		}
	}
	for _, id := range reached {
		if noted[gitops.OID(id)] == "" {
			w.t.Errorf("%s: %s has no note", when, id)
		}
	}
}

// TestUndoRemovesNotes undoes and redoes the landing of some pending commits, which had their notes before. Afterwards exactly
// those commits have notes that have landed or wait, or that another branch has.
func TestUndoRemovesNotes(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	for _, name := range []string{"one", "two", "three"} {
		w.commits(name, name, name+"\n")
	}
	w.cycle()
	w.wantNotes("pending")
	w.verdict(review.Approve, "", "one", "two")
	w.wantLanded("two one")
	landed := w.notes()
	w.wantNotes("landed")
	w.git("branch", "topic", "HEAD~")
	_, err := w.undo()
	check(t, err)
	w.wantLanded("")
	w.wantStates("one:undone two:undone three:new")
	w.wantNotes("undone")
	_, err = w.redo()
	check(t, err)
	w.wantLanded("two one")
	w.wantNotes("landed again")
	for _, id := range []gitops.OID{w.tip(), gitops.OID(w.git("rev-parse", "HEAD~"))} {
		if got := w.notes()[id]; got != landed[id] || got == "" {
			t.Errorf("%s has the note %q after redo, and had %q", id, got, landed[id])
		}
	}
	w.verdict(review.Approve, "", "three")
	w.wantLanded("three two one")
	w.wantNotes("all landed")
}

// TestRefusedRedoKeepsPending refuses a redo because the user's files are in the way. The commits that wait stay as they are.
func TestRefusedRedoKeepsPending(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.verdict(review.Approve, "", "one")
	w.wantLanded("one")
	_, err := w.undo()
	check(t, err)
	w.wantLanded("")
	pending, notes := w.git("rev-parse", w.record.Ref("pending")), w.git("rev-parse", promote.NotesRef)
	check(t, os.WriteFile(filepath.Join(w.Top, "one"), []byte("mine\n"), 0o600))
	_, err = w.redo()
	w.refuses(err, "not committed: one")
	w.engine = newEngine(w.Repository, w.record, w.inner)
	w.wantStates("one:undone two:new")
	w.verdict(review.Reject, "no", "two")
	if got := w.git("rev-parse", w.record.Ref("rejected/1")); got != pending {
		t.Errorf("%s was rejected, want the pending commit %s", got, pending)
	}
	if got := w.git("rev-parse", promote.NotesRef); got != notes {
		t.Errorf("the notes have moved from %s to %s", notes, got)
	}
	w.wantLanded("")
	w.wantNotes("rejected")
}
