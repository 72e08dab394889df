package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestForkOfCommitThatLacksAnother lands a commit without an older one. The agent then goes back to a commit that the user made, and merges the
// older commit there. That merge undoes the commits that landed since then, and has the change of the older one.
func TestForkOfCommitThatLacksAnother(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		later bool // the user's commit comes after the landing that lacks a commit, and before another landing
		alone bool // the older commit is approved before the merge
		files string
	}{
		"together":   {files: "a\nmine\nolder"},
		"one by one": {alone: true, files: "a\nmine\nolder"},
		"later":      {later: true, files: "a\nmine\nold\nolder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			fetch := func() {
				w.mine("mine", "m\n")
				w.agent("fetch", "-q", w.Top, "main")
			}
			if !c.later {
				fetch()
			}
			w.commits("older", "older", "1\n")
			w.agent("branch", "side")
			w.commits("old", "old", "2\n")
			w.cycle()
			w.verdict(review.Approve, "", "old")
			w.cycle()
			if c.later {
				fetch()
				w.commits("last", "last", "3\n")
				w.cycle()
				w.verdict(review.Approve, "", "last")
				w.cycle()
			}
			w.agent("reset", "-q", "--hard", "FETCH_HEAD")
			w.agent("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "merge", "side")
			w.cycle()
			w.wantStates("older:new merge:new")
			w.verdict(review.Approve, "", "older")
			if c.alone {
				w.cycle()
			}
			w.verdict(review.Approve, "", "merge")
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
				t.Fatalf("%+v", o)
			}
			if got := w.git("ls-tree", "-r", "--name-only", "HEAD"); got != c.files {
				t.Errorf("the branch has %q, want %q", got, c.files)
			}
			w.nothingLeft()
		})
	}
}

// TestRewriteOfLeftOutCommit lands a commit without an older one. The agent then amends the older one below it, as after a request to fix
// it, or writes its change anew in another place. The branch has that change when the new commits have landed.
func TestRewriteOfLeftOutCommit(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		onto, content string // of the new older commit
		again         bool   // the landed commit is made again on top
	}{
		"the same content":               {"HEAD~2", "1\n", false},
		"other content":                  {"HEAD~2", "1\n2\n", false},
		"both":                           {"HEAD~2", "1\n2\n", true},
		"both, the same content":         {"HEAD~2", "1\n", true},
		"on the branch":                  {"FETCH_HEAD", "1\n", false},
		"on the branch, other content":   {"FETCH_HEAD", "1\n2\n", false},
		"on the branch, both, and other": {"FETCH_HEAD", "1\n2\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.agent("fetch", "-q", w.Top, "main")
			w.commits("older", "older", "1\n")
			w.commits("old", "old", "2\n")
			w.cycle()
			w.verdict(review.Fix, "better", "older")
			w.verdict(review.Approve, "", "old")
			w.wantLanded("old")
			w.agent("reset", "-q", "--hard", c.onto)
			w.commits("amended", "older", c.content)
			names := []string{"amended"}
			if c.again {
				w.commits("again", "old", "2\n")
				names = append(names, "again")
			}
			w.cycle()
			w.verdict(review.Approve, "", names...)
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
				t.Fatalf("%+v", o)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestConflictWithLandedCommit lands a commit without older ones, and lets the agent amend it. The older commit that waits changes the same
// line. The hold does not name the user's commits, unless one of them changes that file.
func TestConflictWithLandedCommit(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		w := newWorld(t, "sha1", tree{"a": plain("1\n")})
		w.git("config", "airlock.review", "land")
		w.commits("older", "a", "2\n")
		w.commits("kept", "kept", "1\n")
		w.commits("back", "a", "1\n")
		w.commits("old", "a", "3\n")
		w.cycle()
		w.verdict(review.Approve, "", "kept", "old")
		w.wantLanded("old kept")
		if w.mine("mine", "m\n"); own {
			w.mine("a", "mine\n")
		}
		w.agent("reset", "-q", "--hard", "HEAD~1")
		w.commits("amended", "a", "4\n")
		w.cycle()
		w.verdict(review.Approve, "", "older", "back", "amended")
		holds := w.cycle().Of(ledger.Conflict)
		if len(holds) != 1 || strings.Contains(holds[0].Message, "of your own") != own || len(holds[0].Paths) != 1 || len(holds[0].Next) == 0 {
			t.Fatalf("%t: %+v", own, holds)
		}
		_, err := tryGit(w.Top, "", "merge", "-q", w.record.Ref("pending"))
		if err == nil {
			t.Error("the merge is clean")
		}
		w.git("checkout", "-q", "--theirs", "a")
		w.git("commit", "-q", "-a", "-m", "mine: merged")
		if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 || w.git("show", "HEAD:a") != "4" {
			t.Errorf("%t: %+v, states %q", own, o, w.states())
		}
		w.nothingLeft()
	}
}
