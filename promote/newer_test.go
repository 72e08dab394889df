package promote_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// crowd lets the agent make a number of commits in one go, and returns their names. Most are empty or add a file. A few change a line of f that no
// other commit changes.
func (w *world) crowd(number, line int) []string {
	w.t.Helper()
	lines := strings.Split(w.agent("show", "HEAD:f"), "\n")
	before := w.agent("rev-parse", "HEAD")
	var stream strings.Builder
	for i := range number {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ghost <g@x> %d +0000\ndata 5\ncrowd\n", 1_700_000_000+i)
		if i == 0 {
			fmt.Fprintf(&stream, "from %s\n", before)
		}
		switch {
		case i%100 == 50:
			lines[line] = fmt.Sprint("crowd ", before[:7], i)
			text := strings.Join(lines, "\n") + "\n"
			fmt.Fprintf(&stream, "M 644 inline f\ndata %d\n%s\n", len(text), text)
		case i%3 == 0:
			fmt.Fprintf(&stream, "M 644 inline crowd/%s-%d\ndata 2\nx\n\n", before[:7], i)
		}
	}
	if _, err := tryGit(w.inner, stream.String(), "fast-import", "--quiet", "--force"); err != nil {
		w.t.Fatal(err)
	}
	w.agent("reset", "-q", "--hard")
	return strings.Fields(w.agent("rev-list", before+"..main"))
}

// TestNewerCommitStaysAmongMany is like [TestNewerCommitStays], with hundreds of commits that change other paths and lines. The commit that takes
// D back waits as it does without them, and a commit with a change of its own lands as it does without them.
func TestNewerCommitStaysAmongMany(t *testing.T) {
	notShort(t)
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f": plain(list(nil)), "k": plain("k\n"), "a": plain("a\n")})
	w.mine("k", "mine\n")
	plain("held\n").write(t, w.inner+"/"+recipe)
	w.commits("A", "a", "changed\n")
	plain("with D\n").write(t, w.inner+"/k")
	w.commits("D", "f", list(map[int]string{5: "FIVE"}))
	w.commits("R", "f", list(nil))
	w.commits("N", "f", list(map[int]string{5: "FIVE", 15: "FIFTEEN"}))
	for range 2 {
		w.crowd(600, 19)
		w.cycle()
		if got := w.git("show", "HEAD:f"); !strings.Contains(got, "\nFIVE\n") {
			t.Fatalf("an older commit has taken back what a newer one has made again\n%s\n%s", w.git("log", "-3", "--format=%s"), got)
		}
	}
	_, err := w.engine.Accept(t.Context(), []policy.Acceptance{{Rule: "recipe"}})
	check(t, err)
	w.cycle()
	if got := w.git("log", "-1", "--format=%s"); got != "A" {
		t.Errorf("%s has landed last, want A: %s", got, w.states())
	}
	w.nothingLeft()
}

// TestStaysBehindOldDates lets an older commit land after a crowd of newer ones, whose committer dates are years older. A commit that comes then takes
// nothing back, although it is a long way back to the older commit by the dates.
func TestStaysBehindOldDates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f": plain(list(nil))})
	w.git("config", "airlock.review", "land")
	w.commits("A", "a", "a\n")
	names := w.crowd(10, 19)
	w.cycle()
	_, err := verdict.Record(t.Context(), w.engine, verdict.Request{Word: review.Approve, Names: names})
	check(t, err)
	w.cycle()
	back := func(name string) {
		w.agent("rm", "-q", "a")
		w.agent("commit", "-q", "-m", name)
	}
	back("B")
	w.commits("C", "c", "c\n")
	w.cycle()
	w.verdict(review.Approve, "", "A", "C")
	w.cycle()
	w.agent("revert", "--no-edit", "HEAD~1")
	back("D")
	w.commits("E", "e", "e\n")
	w.cycle()
	w.verdict(review.Approve, "", "E")
	w.cycle()
	note := w.notes()[gitops.OID(w.git("rev-parse", "HEAD"))]
	if got := w.files(); !strings.HasPrefix(w.subjects(), "E C A ") || !strings.HasPrefix(got, "a ") || noteValue(note, "Supersedes") != "" {
		t.Errorf("%q has landed, and the branch has %q\n%s", w.subjects(), got, note)
	}
	w.wantStates(`B:new Revert "B":new D:new`)
}

// TestTakenBackAgainStays lets the agent make a change again and take it back again, in two newer commits that land. Together they change nothing. The
// commit that made the change first lands after them, and does not bring it back.
func TestTakenBackAgainStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, with, without string }{
		"file": {"d", "d\n", ""},
		"line": {"f", list(map[int]string{5: "FIVE"}), list(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"f": plain(list(nil))})
			without := w.agent("ls-tree", "-r", "HEAD")
			w.commits("D", c.file, c.with)
			w.leave("undo", "D")
			back := func(name string) {
				if c.without == "" {
					w.agent("rm", "-q", c.file)
					w.agent("commit", "-q", "-m", name)
				} else {
					w.commits(name, c.file, c.without)
				}
				w.cycle()
			}
			back("R")
			w.commits("N", c.file, c.with)
			w.cycle()
			back("M")
			w.wantLanded("M N")
			w.verdict(review.Approve, "", "D")
			w.cycle()
			w.cycle()
			if !strings.HasPrefix(w.subjects(), "D ") && !strings.Contains(w.subjects(), " D ") || w.git("ls-tree", "-r", "HEAD") != without {
				t.Errorf("the branch has\n%s\n%s", w.git("log", "-p", "-U0"), w.states())
			}
			w.nothingLeft()
		})
	}
}

// TestRewrittenNewerCommitStays lets the user rewrite the newer commit that has made a change again, after it has landed. The older commit that takes
// the change back must not land on top of the rewritten one, as long as the change is there.
func TestRewrittenNewerCommitStays(t *testing.T) {
	notShort(t)
	t.Parallel()
	amend := func(w *world) { w.git("commit", "-q", "--amend", "-m", "amended") }
	squash := func(w *world) {
		w.git("reset", "-q", "--soft", "HEAD~2")
		w.git("commit", "-q", "-m", "squashed")
	}
	for name, c := range map[string]struct {
		after   bool // a commit of another file lands after N
		rewrite func(*world)
		five    string // in the end
		fifteen bool
	}{
		"amended":  {false, amend, "FIVE", true},
		"squashed": {true, squash, "FIVE", true},
		"amended without a file": {false, func(w *world) {
			w.git("rm", "-q", "--cached", "n")
			amend(w)
		}, "FIVE", true},
		"amended with another change of a line": {false, func(w *world) {
			plain(strings.Replace(w.git("show", "HEAD:f"), "FIFTEEN", "FIFTEEN of mine", 1)+"\n").write(w.t, w.Top+"/f")
			w.git("add", "f")
			amend(w)
		}, "FIVE", true},
		"reverted": {false, func(w *world) { w.git("revert", "--no-edit", "HEAD") }, "5", false},
		"reset":    {false, func(w *world) { w.git("reset", "-q", "--hard", "HEAD~1") }, "5", false},
	} {
		for _, more := range []bool{false, true} { // R also changes another line, and waits for another reason
			t.Run(fmt.Sprint(name, more), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "sha1", tree{"f": plain(list(nil))})
				w.commits("D", "f", list(map[int]string{5: "FIVE"}))
				w.leave("undo", "D")
				lines := map[int]string{}
				if more {
					lines[10] = "TEN"
					plain("held\n").write(t, w.inner+"/"+recipe)
				}
				w.commits("R", "f", list(lines))
				lines[5], lines[15] = "FIVE", "FIFTEEN"
				plain("n\n").write(t, w.inner+"/n")
				w.commits("N", "f", list(lines))
				landed := "N"
				if c.after {
					w.commits("Z", "z", "z\n")
					landed = "Z N"
				}
				w.cycle()
				w.wantLanded(landed)
				c.rewrite(w)
				w.cycle()
				w.git("config", "airlock.policy.recipe", "off")
				for range 2 {
					w.cycle()
				}
				got := strings.Split(w.git("show", "HEAD:f"), "\n")
				if got[4] != c.five || strings.HasPrefix(got[14], "FIFTEEN") != c.fifteen || more != (got[9] == "TEN") {
					t.Errorf("the branch has %q\n%s\n%s", got, w.git("log", "-p", "-U0"), w.states())
				}
				w.nothingLeft()
			})
		}
	}
}

// TestMoreNewerCommitsThanOneCycleMerges holds commits and lands newer ones of the same file and of equal lines. There are more merges to make with them
// than one cycle makes. The commits that are left wait, and land in a later cycle.
func TestMoreNewerCommitsThanOneCycleMerges(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand merges take half a minute")
	}
	t.Parallel()
	var lines []string
	for i := range 80 {
		lines = append(lines, fmt.Sprint("first ", i), "same", fmt.Sprint("second ", i), fmt.Sprint("end of ", i), "")
	}
	text := func() string { return strings.Join(lines, "\n") }
	w := newWorld(t, "sha1", tree{"f": plain(text())})
	change := func(block int, value string) {
		lines[5*block], lines[5*block+2] = value, value
	}
	held := func(name string) {
		plain(name+"\n").write(t, w.inner+"/"+recipe)
		w.commits(name, "f", text())
	}
	const older, newer = 33, 32
	for i := range older {
		change(2*i, fmt.Sprint("older ", i))
		held(fmt.Sprint("older", i))
	}
	for i := range newer {
		lines[5*75] = fmt.Sprint("between ", i)
		held(fmt.Sprint("between", i))
		change(78, fmt.Sprint("newer ", i))
		w.commits(fmt.Sprint("newer", i), "f", text())
	}
	w.cycle()
	if got := len(strings.Fields(w.subjects())); got != newer {
		t.Fatalf("%d commits have landed, want %d", got, newer)
	}
	w.git("config", "airlock.policy.recipe", "off")
	o, err := w.engine.Cycle(t.Context(), promote.Options{})
	check(t, err)
	waits := func(h ledger.Hold) bool {
		return h.Reason == ledger.Conflict && strings.Contains(h.Message, "more newer commits on main than can be compared")
	}
	if strings.Contains(w.subjects(), "older32") || !slices.ContainsFunc(o.Holds, waits) {
		t.Errorf("%q has landed, holds %+v", w.subjects(), o.Holds)
	}
	w.cycle()
	if got := w.git("show", "HEAD:f"); got+"\n" != text() {
		t.Errorf("the branch has\n%s", w.git("diff", "--stat", string(w.record.Base), "HEAD"))
	}
	w.nothingLeft()
}

// TestRandomOrdersAmongMany is like [TestRandomOrdersKeepTheNewest], with hundreds of newer commits that change other paths and lines.
func TestRandomOrdersAmongMany(t *testing.T) {
	notShort(t)
	t.Parallel()
	eachSeed(t, seeds(t, few(1, 3)), func(t *testing.T, format string, seed uint64) {
		w := newWorld(t, format, tree{"f": plain(sections("f")), "keep": plain("keep\n")})
		w.git("config", "airlock.review", "land")
		m := &remaker{world: w, r: rand.New(rand.NewPCG(seed, 32)), files: map[string]string{}}
		for step := range 14 {
			m.step()
			m.step()
			if step%5 == 4 {
				names := w.crowd(250, 22)
				w.cycle()
				_, err := verdict.Record(t.Context(), m.engine, verdict.Request{Word: review.Approve, Names: names})
				check(t, err)
			}
			w.cycle()
			m.newestStays()
		}
		m.settle(2)
	})
}
