package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestSideOfApprovedCommit approves a commit that was left out, after others have landed. A side branch of the agent that needs it lands with its
// merge, also where the other side changes the same line, and stays as it was built while it waits.
func TestSideOfApprovedCommit(t *testing.T) {
	notShort(t)
	t.Parallel()
	lines := func(five string) string {
		return strings.Repeat("line\n", 4) + five + "\n" + strings.Repeat("line\n", 14)
	}
	for name, c := range map[string]struct {
		how    string
		file   string // that the agent's main changes beside the side branch
		before bool   // the side branch has a commit that does not need the one left out
		newer  bool   // another commit lands before the approval
		waits  bool   // the side branch waits for a review, while the user makes commits
	}{
		"undo":                        {how: "undo", file: "f", newer: true},
		"undo, other file":            {how: "undo", file: "m"},
		"undo, longer side":           {how: "undo", file: "f", before: true, newer: true},
		"undo, longer side, waits":    {how: "undo", file: "f", before: true, newer: true, waits: true},
		"reject":                      {how: "reject", file: "f", newer: true},
		"reject, other file":          {how: "reject", file: "m", newer: true},
		"reject, other file, waits":   {how: "reject", file: "m", waits: true},
		"reject, longer side":         {how: "reject", file: "m", before: true},
		"reject, nothing newer":       {how: "reject", file: "m"},
		"reject, same, nothing newer": {how: "reject", file: "f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"f": plain(lines("5"))})
			w.commits("D", "f", lines("FIVE"))
			w.leave(c.how, "D")
			w.commits("T", "t", "t\n")
			w.wantLanded("T")
			w.agent("checkout", "-q", "-b", "s")
			if c.before {
				w.commits("S0", "s0", "s0\n")
			}
			w.commits("S", "f", lines("SIDE"))
			w.agent("checkout", "-q", "main")
			w.commits("M", c.file, lines("MAIN"))
			w.agent("merge", "-q", "--no-edit", "-m", "merge", "-X", "theirs", "s")
			w.cycle()
			if c.newer {
				w.commits("Z", "z", "z\n")
				w.cycle()
			}
			if c.waits {
				w.git("config", "airlock.review", "land")
			}
			w.verdict(review.Approve, "", "D")
			o := w.cycle()
			for n := 0; c.waits && n < 2; n++ {
				pending := w.ref(w.record.Ref("pending"))
				w.engine = newEngine(w.Repository, w.record, w.inner)
				if o = w.cycle(); o.Pending == 0 || o.Held(ledger.Conflict) || w.ref(w.record.Ref("pending")) != pending {
					t.Errorf("%+v, %s was pending", o, pending)
				}
				w.mine("mine", strings.Repeat("mine\n", n+1))
				w.cycle()
			}
			if c.waits {
				w.git("config", "airlock.review", "off")
				o = w.cycle()
				plain(w.git("show", "HEAD:mine")+"\n").write(t, w.inner+"/mine")
				w.agent("add", "mine")
				w.agent("commit", "-q", "-m", "mine")
			}
			if o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("%+v\n%s\n%s", o, w.states(), w.git("log", "--graph", "--format=%h %s", "--stat"))
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}
