package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
)

// reviewedMerge lets the agent make one on main, side on a branch, a merge of both, and two on top. Each needs an approval.
func reviewedMerge(t *testing.T) *world {
	t.Helper()
	w := newWithReview(t)
	w.commits("one", "one", "1\n")
	w.agent("checkout", "-q", "-b", "other", "HEAD~1")
	w.commits("side", "side", "side\n")
	w.agent("checkout", "-q", "main")
	w.agent("merge", "-q", "--no-ff", "-m", "merge", "other")
	w.commits("two", "two", "2\n")
	w.cycle()
	w.wantStates("side:new one:new merge:new two:new")
	return w
}

// reviewed is a verdict on some commits, what has landed after it, and the states then.
type reviewed struct {
	word           review.Word
	subject        string
	landed, states string
}

// TestReviewOfMerge rejects a merge, or a commit that it brings, and approves it after others have landed. The commits that only the
// merge brings wait with it, and it waits for the commit before it.
func TestReviewOfMerge(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]reviewed{
		"merge": {
			{review.Reject, "merge", "", "side:new one:new merge:rejected two:new"},
			{review.Approve, "one", "one", "side:new merge:rejected two:new"},
			{review.Approve, "two", "two one", "merge:rejected"},
			{review.Approve, "merge", "two one", "side:new merge:approved"},
			{review.Approve, "side", "merge side two one", ""},
		},
		"both": {
			{review.Reject, "side", "", "side:rejected one:new merge:blocked two:new"},
			{review.Reject, "merge", "", "side:rejected one:new merge:rejected two:new"},
			{review.Approve, "two", "two", "side:rejected merge:rejected one:new"},
			{review.Approve, "merge", "two", "side:rejected merge:blocked one:new"},
			{review.Approve, "side", "two", "side:approved merge:approved one:new"},
			{review.Approve, "one", "merge side one two", ""},
		},
		"side": {
			{review.Reject, "side", "", "side:rejected one:new merge:blocked two:new"},
			{review.Approve, "one", "one", "side:rejected merge:blocked two:new"},
			{review.Approve, "two", "two one", "side:rejected merge:blocked"},
			{review.Reject, "merge", "two one", "side:rejected merge:rejected"},
			{review.Approve, "side", "two one", "merge:rejected"},
			{review.Approve, "merge", "merge side two one", ""},
		},
		"backwards": {
			{review.Approve, "two", "two", "one:new side:new merge:new"},
			{review.Approve, "merge", "two", "one:new side:new merge:approved"},
			{review.Approve, "side", "two", "one:new side:approved merge:approved"},
			{review.Approve, "one", "merge side one two", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reviewedMerge(t).follow(steps)
		})
	}
}

// TestApproveBeforePending approves a commit that was undone before one that is pending without it. Both land. If the second one lands
// first, the undone one stays listed.
func TestApproveBeforePending(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]reviewed{
		"both": {
			{review.Approve, "four six", "six four three", "zero:rejected one:blocked"},
			{review.Approve, "zero", "one zero six four three", ""},
		},
		"second": {
			{review.Approve, "six", "six three", "zero:rejected one:blocked four:undone"},
			{review.Approve, "four", "four six three", "zero:rejected one:blocked"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			for _, c := range [][]string{{"zero", "z", "0\n"}, {"one", "z", "1\n"}, {"three", "3", "3\n"}, {"four", "4", "4\n"}, {"six", "6", "6\n"}} {
				w.commits(c[0], c[1], c[2])
			}
			w.cycle()
			w.verdict(review.Approve, "", "three", "four")
			w.cycle()
			_, err := undo.Undo(t.Context(), w.engine, 0)
			check(t, err)
			w.verdict(review.Reject, "no", "zero")
			w.verdict(review.Fix, "mend it", "six")
			w.verdict(review.Approve, "", "one", "three")
			w.cycle()
			w.wantStates("zero:rejected one:blocked four:undone six:asked")
			w.follow(steps)
		})
	}
}

// follow gives verdicts and compares what has landed.
func (w *world) follow(steps []reviewed) {
	w.t.Helper()
	for _, s := range steps {
		w.verdict(s.word, "", strings.Fields(s.subject)...)
		o := w.cycle()
		if w.subjects() != s.landed || w.states() != s.states {
			w.t.Fatalf("%s %s: landed %q, want %q, states %q, want %q: %+v", s.word, s.subject, w.subjects(), s.landed, w.states(), s.states, o.Holds)
		}
	}
}

// TestReviewBeforeFork leaves the commit out at which a side branch begins, while the merge of that branch waits. The commit lands when
// it is approved, and the merge does not need it.
func TestReviewBeforeFork(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]reviewed{
		"first": {
			{review.Approve, "one", "one two", "side:new merge:new"},
			{review.Approve, "merge side", "merge side one two", ""},
		},
		"last": {
			{review.Approve, "merge side", "merge side two", "one:rejected"},
			{review.Approve, "one", "one merge side two", ""},
		},
		"together": {
			{review.Approve, "one merge side", "merge side one two", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.commits("one", "one", "1\n")
			w.commits("two", "two", "2\n")
			w.agent("checkout", "-q", "-b", "other", "HEAD~1")
			w.commits("side", "side", "side\n")
			w.agent("checkout", "-q", "main")
			w.agent("merge", "-q", "--no-ff", "-m", "merge", "other")
			w.cycle()
			w.verdict(review.Reject, "no", "one")
			w.verdict(review.Approve, "", "two")
			w.cycle()
			w.wantStates("one:rejected side:new merge:new")
			w.follow(steps)
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestRedoAfterAmend takes a landing back, and restores it after the agent has amended a commit of it. The old commit is on the branch
// again. The amended one waits, and its note names the old one when it lands.
func TestRedoAfterAmend(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.verdict(review.Approve, "", "one", "two")
	w.cycle()
	landed := w.tip()
	_, err := undo.Undo(t.Context(), w.engine, 0)
	check(t, err)
	w.agent("commit", "-q", "--amend", "-m", "better")
	w.cycle()
	_, err = undo.Redo(t.Context(), w.engine)
	check(t, err)
	o := w.cycle()
	if w.tip() != landed || o.Pending != 1 {
		t.Fatalf("the branch has %q, %+v", w.subjects(), o)
	}
	w.wantStates("better:new")
	w.verdict(review.Approve, "", "better")
	w.cycle()
	if w.subjects() != "better two one" || noteValue(w.notes()[w.tip()], "Supersedes") != string(landed) {
		t.Errorf("landed %q, %q", w.subjects(), w.notes()[w.tip()])
	}
}
