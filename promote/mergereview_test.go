package promote_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
)

// reviewedMerge lets the agent make one on main, side on a branch, a merge of both, and two on top. Each needs an approval.
func reviewedMerge(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.git("config", "airlock.review", "land")
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

// reviewed is one verdict, what has landed after it, and the states then.
type reviewed struct {
	word           review.Word
	subject        string
	landed, states string
}

// TestReviewOfMerge rejects a merge, or a commit that it brings, and approves it after others have landed. The commits that only the
// merge brings wait with it.
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
			{review.Approve, "side", "merge side two", "one:new"},
			{review.Approve, "one", "one merge side two", ""},
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
			{review.Approve, "side", "merge side two", "one:new"},
			{review.Approve, "one", "one merge side two", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reviewedMerge(t)
			for _, s := range steps {
				w.judge(s.word, "", s.subject)
				o := w.cycle()
				if w.subjects() != s.landed || w.states() != s.states {
					t.Fatalf("%s %s: landed %q, want %q, states %q, want %q: %+v", s.word, s.subject, w.subjects(), s.landed, w.states(), s.states, o.Holds)
				}
			}
		})
	}
}
