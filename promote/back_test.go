package promote_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// backWithoutOlder is [landedWithoutOlder], after which another history of the agent has landed. The agent is back at the first one.
func backWithoutOlder(t *testing.T, word review.Word) *world {
	t.Helper()
	w := landedWithoutOlder(t, word)
	w.agent("branch", "before")
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("other", "other", "3\n")
	w.cycle()
	w.verdict(review.Approve, "", "other")
	w.wantLanded("other old")
	w.agent("reset", "-q", "--hard", "before")
	return w
}

// TestBackToCommitThatLacksAnother lands a commit without an older one. The agent makes another history, which lands, and then goes back to the first
// one. The change of the older commit is not on the branch before it is approved.
func TestBackToCommitThatLacksAnother(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, word := range map[string]review.Word{"waits": "", "rejected": review.Reject, "to be fixed": review.Fix} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := backWithoutOlder(t, word)
			w.commits("new", "new", "4\n")
			w.commits("newer", "newer", "5\n")
			w.cycle()
			w.verdict(review.Approve, "", "new", "newer")
			w.wantLanded("newer new other old")
			if got, want := w.git("ls-tree", "-r", "--name-only", "HEAD"), "a\nnew\nnewer\nold"; got != want {
				t.Fatalf("the branch has %q, want %q", got, want)
			}
			w.verdict(review.Approve, "", "older")
			w.wantLanded("older newer new other old")
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestBackToCommitThatLacksAndNeedsAnother is like [TestBackToCommitThatLacksAnother], but the first new commit changes the file of the older one, and so waits
// for it. It does not land on top of the other history, as if that were the one to which the agent goes back: the branch would lack the
// commit that landed first.
func TestBackToCommitThatLacksAndNeedsAnother(t *testing.T) {
	notShort(t)
	t.Parallel()
	approve := func(names ...string) func(w *world) {
		return func(w *world) {
			for _, name := range names {
				w.verdict(review.Approve, "", name)
			}
		}
	}
	for name, c := range map[string]struct {
		steps  []func(*world) // with a cycle after each
		landed string
	}{
		"together":   {[]func(*world){approve("older", "new")}, "new older other old"},
		"one by one": {[]func(*world){approve("older"), approve("new")}, "new older other old"},
		"new first":  {[]func(*world){approve("new"), approve("older")}, "new older other old"},
		"rejected": {[]func(*world){func(w *world) { w.verdict(review.Reject, "because", "older"); w.verdict(review.Approve, "", "new") }, func(w *world) {
			if o := w.cycle(); w.subjects() != "other old" || !o.Held(ledger.Conflict) {
				w.t.Fatalf("%q, %+v", w.subjects(), o)
			}
		}, approve("older")}, "new older other old"},
		"up to": {[]func(*world){func(w *world) {
			_, err := w.engine.Drain(w.t.Context(), promote.Options{Land: true, UpTo: w.innerOf("new")})
			check(w.t, err)
		}}, "new older other old"},
		"without a review": {[]func(*world){func(w *world) { // both are built in the cycle that lands them
			w.agent("commit", "-q", "--amend", "--no-edit", "--date=2026-11-20T12:00:00Z")
			_, err := w.engine.Drain(w.t.Context(), promote.Options{Land: true})
			check(w.t, err)
		}}, "new older other old"},
		"one follows": {[]func(*world){func(w *world) { w.commits("newer", "newer", "5\n") }, approve("older", "new"), approve("newer")}, "newer new older other old"},
		"by hand":     {[]func(*world){func(w *world) { w.git("merge", "-q", w.record.Ref("pending")) }}, "new older other old"},
		"left again": {[]func(*world){approve("older"), func(w *world) {
			w.agent("reset", "-q", "--hard", "HEAD~3")
			w.commits("third", "third", "5\n")
		}, approve("third")}, "third older other old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := backWithoutOlder(t, "")
			w.commits("new", "older", "1\n4\n")
			w.cycle()
			w.wantStates("older:new new:new")
			for _, step := range c.steps {
				step(w)
				w.cycle()
			}
			w.wantLanded(c.landed)
			if name != "by hand" { // the user has merged them into the other history, which the next commit undoes
				w.wantSameTrees()
			}
			w.commits("newest", "newest", "6\n")
			w.cycle()
			w.verdict(review.Approve, "", "newest")
			if o := w.wantLanded("newest " + c.landed); o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("%+v", o)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestResetOfCommitThatLandedAside lets the agent reset away an older commit that landed after later ones, to another history that has landed
// or to none. The next commit removes it, as it removes every landed commit that the agent has reset away.
func TestResetOfCommitThatLandedAside(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"to the root": false, "to another history": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			approved := func(landed, files string, subjects ...string) {
				t.Helper()
				w.cycle()
				w.verdict(review.Approve, "", subjects...)
				w.wantLanded(landed)
				if got := w.git("ls-tree", "-r", "--name-only", "HEAD"); got != files {
					t.Fatalf("the branch has %q, want %q", got, files)
				}
			}
			w.commits("older", "older", "1\n")
			w.commits("old", "old", "2\n")
			approved("old", "a\nold", "old")
			w.agent("branch", "before")
			landed, next := "old", "a\nnext"
			if other {
				w.agent("reset", "-q", "--hard", "HEAD~2")
				w.commits("other", "other", "3\n")
				approved("other old", "a\nother", "other")
				w.agent("branch", "else")
				w.agent("reset", "-q", "--hard", "before")
				w.commits("new", "older", "1\n4\n")
				w.cycle()
				landed, next = "other old", "a\nnext\nother"
			}
			w.verdict(review.Approve, "", "older")
			w.wantLanded("older " + landed)
			w.agent("reset", "-q", "--hard", map[bool]string{true: "else", false: "before~2"}[other])
			w.commits("next", "next", "5\n")
			approved("next older "+landed, next, "next")
			gone := w.git("log", "-1", "--format=%H", "--grep=^older$")
			if note := w.notes()[w.tip()]; !slices.Contains(noteValues(note, "Supersedes"), gone) {
				t.Errorf("the note does not name %s: %s", gone, note)
			}
			w.commits("newest", "newest", "6\n")
			approved("newest next older "+landed, strings.Replace(next, "next", "newest\nnext", 1), "newest")
			w.nothingLeft()
		})
	}
}

// TestMergeOfCommitThatLacksAnother lands a commit without an older one, and another history after it. The agent merges the first history. The merge
// does not bring the change of the older commit before that one is approved.
func TestMergeOfCommitThatLacksAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ onto, files string }{
		"on the landed one": {"HEAD", "a\nmine\nold\nolder\nother"},
		"on the branch":     {"FETCH_HEAD", "a\nmine\nold\nolder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.mine("mine", "m\n")
			w.agent("fetch", "-q", w.Top, "main")
			w.commits("older", "older", "1\n")
			w.commits("old", "old", "2\n")
			w.cycle()
			w.verdict(review.Approve, "", "old")
			w.cycle()
			w.agent("branch", "before")
			w.agent("reset", "-q", "--hard", "HEAD~2")
			w.commits("other", "other", "3\n")
			w.cycle()
			w.verdict(review.Approve, "", "other")
			w.cycle()
			w.agent("reset", "-q", "--hard", c.onto)
			w.agent("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "merge", "before")
			w.cycle()
			w.verdict(review.Approve, "", "merge")
			if o := w.cycle(); !o.Held(ledger.Review) || w.git("ls-tree", "-r", "--name-only", "HEAD") != "a\nmine\nother" {
				t.Fatalf("the branch has %q, %+v", w.git("ls-tree", "-r", "--name-only", "HEAD"), o)
			}
			w.verdict(review.Approve, "", "older")
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 || w.git("ls-tree", "-r", "--name-only", "HEAD") != c.files {
				t.Errorf("the branch has %q, %+v", w.git("ls-tree", "-r", "--name-only", "HEAD"), o)
			}
			w.nothingLeft()
		})
	}
}

// TestPendingAfterRestore gives the workspace an older state, without the objects of what landed since, as a restore of a checkpoint does. Only
// commits that the agent makes on top of it are pending, and not the history up to it.
func TestPendingAfterRestore(t *testing.T) {
	t.Parallel()
	for back := range 4 {
		w := newWorld(t, "sha1", tree{"a": plain("a\n")})
		for _, name := range []string{"one", "two", "three"} {
			w.commits(name, name, "1\n")
		}
		w.wantLanded("three two one")
		w.agent("reset", "-q", "--hard", fmt.Sprintf("HEAD~%d", back))
		w.agent("reflog", "expire", "--all", "--expire=now")
		w.agent("gc", "-q", "--prune=now")
		for want, name := range []string{"", "four", "five"} {
			if name != "" {
				w.commits(name, name, "1\n")
			}
			if s := w.state(); s.Pending != want {
				t.Errorf("%d commits back, and %d new ones: %d are pending", back, want, s.Pending)
			}
		}
	}
}
