package promote_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
)

// TestTakingALeftOutCommitBack rejects a commit that the agent takes back later: before another commit has landed without it, or after
// that. The commit that takes it back changes nothing on the branch, and is blocked like one that needs the rejected commit.
func TestTakingALeftOutCommitBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ needs, before bool }{"together": {}, "afterwards": {before: true}, "needs it, afterwards": {true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.commits("out", "a", "a\nout\n")
			w.commits("one", "one", "1\n")
			w.wantLanded("")
			w.verdict(review.Reject, "no", "out")
			landed := ""
			if c.before {
				w.verdict(review.Approve, "", "one")
				w.wantLanded("one")
				landed = " one"
			}
			back := "a\n"
			if c.needs {
				back = "a\nout\nmore\n"
			}
			w.commits("back", "a", back)
			w.commits("two", "two", "2\n")
			w.cycle()
			w.verdict(review.Approve, "", "back", "two")
			w.wantLanded("two" + landed)
			w.cycle()
			if got := w.states(); got != "out:rejected back:blocked" && got != "out:rejected one:new back:blocked" {
				t.Errorf("states %q", got)
			}
			w.verdict(review.Approve, "", "out")
			w.cycle()
			w.wantLanded("back out two" + landed)
			w.nothingLeft()
		})
	}
}

// TestTakingSeveralBack rejects one of two commits that the agent takes back with one commit. The rest of that commit changes something on
// the branch, and so it stands.
func TestTakingSeveralBack(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"together": false, "afterwards": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.commits("out", "out", "1\n")
			w.commits("in", "in", "2\n")
			w.cycle()
			w.verdict(review.Reject, "no", "out")
			if before {
				w.verdict(review.Approve, "", "in")
				w.wantLanded("in")
			}
			w.agent("rm", "-q", "out", "in")
			w.commits("back", "a", "b\n")
			w.cycle()
			names := []string{"back", "in"}
			if before {
				names = names[:1]
			}
			w.verdict(review.Approve, "", names...)
			w.wantLanded("back in")
			if got := w.git("ls-tree", "-r", "--name-only", "HEAD"); got != "a" {
				t.Errorf("the branch has %q", got)
			}
		})
	}
}
