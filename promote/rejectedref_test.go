package promote_test

import (
	"errors"
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
)

// TestRefsOfRejectedCommits rejects a commit after an undone one had a ref, and after a kill left a ref without a verdict.
func TestRefsOfRejectedCommits(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.verdict(review.Approve, "", "one")
	w.wantLanded("one")
	_, err := undo.Undo(t.Context(), w.engine, 0)
	check(t, err)
	w.cycle()
	w.verdict(review.Fix, "tests, please", "one")
	var refused *undo.Refused
	if _, err = undo.Redo(t.Context(), w.engine); !errors.As(err, &refused) {
		t.Errorf("redo of a commit that waits for a fix: %v", err)
	}
	w.git("update-ref", w.record.Ref("rejected/2"), string(w.record.Base))
	w.verdict(review.Reject, "no", "two")
	if got := w.git("log", "-1", "--format=%s", w.record.Ref("rejected/3")); got != "two" {
		t.Errorf("rejected/3 is %q", got)
	}
	w.verdict(review.Approve, "", "one")
	w.wantLanded("one")
	if w.ref(w.record.Ref("rejected/1")) != "" {
		t.Error("the ref of an approved commit is left")
	}
}
