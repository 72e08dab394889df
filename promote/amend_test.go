package promote_test

import (
	"fmt"
	"math/rand/v2"
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

// TestConflictOfAmend lets the agent amend a landed commit so that it conflicts, and commit more. The commit after it lands first and undoes the
// landed one. So the change that the amended commit repeats is in the pending commit, and the user's merge brings it.
func TestConflictOfAmend(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(w *world, more func()){
		"together":   func(w *world, more func()) { more(); w.cycle() },
		"afterwards": func(w *world, more func()) { w.cycle(); more(); w.cycle() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"g": plain("g\n"), "k": plain("k\n")})
			w.commits("A", "g", "agent\n")
			w.wantLanded("A")
			w.mine("k", "mine\n")
			plain("theirs\n").write(t, w.inner+"/k")
			w.agent("commit", "-q", "-a", "--amend", "-m", "A2")
			work(w, func() { w.commits("B", "b", "b\n") })
			if o := w.wantLanded("B mine: k A"); !o.Held(ledger.Conflict) {
				t.Fatalf("%+v", o)
			}
			if got := w.git("diff-tree", "-r", "--no-commit-id", "--name-only", w.record.Ref("pending")); got != "g\nk" {
				t.Errorf("the pending commit changes %q", got)
			}
			if got := w.resolves(); got != "k" {
				t.Errorf("the user had to merge %q", got)
			}
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("%+v", o)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestRandomAmendsInConflict lets the agent amend landed commits and commit more, while the user changes a file that some of them change, too. The
// user merges each conflict. When nothing is left to land, the branch has what the agent has, but for that file.
func TestRandomAmendsInConflict(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, few(3, 8)), func(t *testing.T, format string, seed uint64) {
		files := tree{"k": plain("k\n")}
		for n := range 4 {
			files[fmt.Sprint("g", n)] = plain(fmt.Sprint(n, "\n"))
		}
		w, r := newWorld(t, format, files), rand.New(rand.NewPCG(seed, 41))
		resolved, whole := 0, 0
		for n := range 30 {
			switch pick := r.IntN(10); {
			case pick < 3:
				w.commits(fmt.Sprint("c", n), fmt.Sprint("g", r.IntN(4)), fmt.Sprint("agent ", n, "\n"))
			case pick < 5:
				w.conflictingAmend(r, n)
			case pick < 7:
				w.mine("k", fmt.Sprint("mine ", n, "\n"))
			}
			if r.IntN(3) == 0 {
				continue
			}
			for o := w.cycle(); o.Held(ledger.Conflict); o = w.cycle() {
				resolved++
				w.resolves()
				if resolved > 90 {
					t.Fatalf("%+v\n%s\n%s", o, w.git("log", "--graph", "--stat", "--format=%h %s", w.record.Branch, w.record.Ref("pending")), w.agent("log", "--stat", "--format=%h %s"))
				}
			}
			if s := w.state(); s.Pending > 0 || len(s.Holds) > 0 {
				t.Fatalf("%+v", s)
			}
			whole++
			if got, want := w.git("ls-tree", "HEAD", "g0", "g1", "g2", "g3"), w.agent("ls-tree", "HEAD", "g0", "g1", "g2", "g3"); got != want {
				t.Fatalf("the branch has\n%s\nwant\n%s\n%s\n%s", got, want, w.git("log", "--graph", "-p", "-U0", "--format=%h %s", "HEAD"), w.agent("log", "-p", "-U0", "--format=%h %s"))
			}
		}
		t.Logf("%d conflicts, %d whole branches", resolved, whole)
	})
}

// conflictingAmend lets the agent amend its newest commit so that it conflicts with the user's file, and commit more now and then.
func (w *world) conflictingAmend(r *rand.Rand, n int) {
	if w.innerOf("Initial commit") == strings.TrimSpace(w.agent("rev-parse", "HEAD")) {
		return
	}
	plain(fmt.Sprint("theirs ", n, "\n")).write(w.t, w.inner+"/k")
	w.agent("commit", "-q", "-a", "--amend", "--allow-empty", "-m", fmt.Sprint("amended ", n))
	for range r.IntN(3) {
		w.commits(fmt.Sprint("more ", n), fmt.Sprint("g", r.IntN(4)), fmt.Sprint("more ", r.IntN(1_000_000), "\n"))
	}
}
