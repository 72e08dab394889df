package promote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestAmendOfCommitThatLacksAnother lands a commit without the one before it, and lets the agent amend it, or take it back. The commit that undoes
// it has the change of the older one if that lands now, and lacks it otherwise. In the end the branch has what the agent has.
func TestAmendOfCommitThatLacksAnother(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		first review.Word // on the older commit before the other one lands, or empty
		steps []reviewed
	}{
		"together": {"", []reviewed{{review.Approve, "older better", "better older old", ""}}},
		"alone": {"", []reviewed{{review.Approve, "better", "better old", "older:new"},
			{review.Approve, "older", "older better old", ""}}},
		"rejected before": {review.Reject, []reviewed{{review.Approve, "older better", "better older old", ""}}},
		"rejected": {review.Reject, []reviewed{{review.Approve, "better", "better old", "older:rejected"},
			{review.Approve, "older", "older better old", ""}}},
		"one by one": {"", []reviewed{{review.Approve, "older", "older old", "better:new"},
			{review.Approve, "better", "better older old", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := landedWithoutOlder(t, c.first)
			w.agent("rm", "-q", "old")
			w.commits("amended", "better", "3\n")
			w.agent("reset", "-q", "--soft", "HEAD~2")
			w.agent("commit", "-q", "-m", "better")
			w.cycle()
			for _, s := range c.steps {
				w.verdict(s.word, "", strings.Fields(s.subject)...)
				w.wantLanded(s.landed)
				w.wantStates(s.states)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestMergeOfCommitWithOldVerdict lands an amended merge although the commit that it brings still has the verdict of an undo. That commit
// has landed: the process that made its landing again was killed before it could remove the verdict.
func TestMergeOfCommitWithOldVerdict(t *testing.T) {
	t.Parallel()
	w := reviewedMerge(t)
	w.agent("reset", "-q", "--hard", "HEAD~1")
	w.cycle()
	w.verdict(review.Reject, "no", "one")
	w.verdict(review.Approve, "", "side", "merge")
	w.wantLanded("merge side")
	dir := w.engine.Dir()
	d, err := ledger.ReadDecisions(dir)
	check(t, err)
	undone := ledger.Reviewed{Verdict: review.Verdict{Word: review.Undone, Inner: gitops.OID(strings.TrimSpace(w.agent("rev-parse", "other")))}}
	check(t, d.Review(undone, w.record.Root).Write(dir))
	w.agent("commit", "-q", "--amend", "-m", "better")
	w.cycle()
	w.wantStates("one:rejected better:new")
	w.verdict(review.Approve, "", "better")
	w.wantLanded("better merge side")
}

// TestAmendOfCommitThatLacksARename does the same with commits whose changes could not be taken back from the amended one: git would move its
// file, too, as if the folder had been renamed.
func TestAmendOfCommitThatLacksARename(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"b": plain("1\n2\n3\n4\n")})
	w.git("config", "airlock.review", "land")
	move := func(from, to, subject string) {
		w.agent("mv", from, "renamed/"+to)
		w.agent("commit", "-q", "-m", subject)
	}
	check(t, os.Mkdir(filepath.Join(w.inner, "renamed"), 0o755))
	w.commits("oldest", "a", "a\nb\nc\nd\n")
	move("a", "a", "older")
	move("b", "b", "old")
	w.cycle()
	w.verdict(review.Approve, "", "old")
	w.wantLanded("old")
	w.agent("commit", "-q", "--amend", "-m", "better")
	w.cycle()
	w.verdict(review.Approve, "", "oldest", "older", "better")
	w.wantLanded("better older oldest old")
	w.wantSameTrees()
}

// TestSideOfCommitThatLacksAnother lands a commit without an older one, after a landing that lacked them and a merge, and that the agent has amended.
// The side that the merge brings begins at the older commit. The merge does not bring that one: both of its sides have it.
func TestSideOfCommitThatLacksAnother(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("older", "older", "1\n")
	w.agent("switch", "-q", "-c", "other")
	w.commits("side", "side", "2\n")
	w.agent("switch", "-q", "main")
	w.commits("kept", "kept", "3\n")
	w.agent("merge", "-q", "--no-edit", "-m", "merge", "other")
	w.commits("last", "last", "4\n")
	w.cycle()
	w.verdict(review.Approve, "", "last")
	w.wantLanded("last")
	w.agent("commit", "-q", "--amend", "-m", "better")
	w.cycle()
	w.verdict(review.Approve, "", "kept")
	w.wantLanded("kept last")
	w.verdict(review.Approve, "", "older", "side", "merge", "better")
	w.cycle()
	w.wantSameTrees()
	w.nothingLeft()
}
