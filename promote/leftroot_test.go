package promote_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
)

// firstCommits are the ways in which the agent makes its first new commit, with the subject root and the file left.
var firstCommits = map[string]func(w *world){
	"no root": func(w *world) { w.commits("root", "left", "left\n") },
	"amend": func(w *world) {
		plain("left\n").write(w.t, w.inner+"/left")
		w.agent("add", "-A")
		w.agent("commit", "-q", "--amend", "-m", "root")
	},
	"orphan": func(w *world) { w.orphanMain("root", "left") },
}

// orphanMain makes a root commit the agent's newest one. It has the files of the former one and a new file.
func (w *world) orphanMain(name, file string) {
	w.t.Helper()
	w.agent("checkout", "-q", "--orphan", name)
	w.commits(name, file, name+"\n")
	w.agent("branch", "-q", "-f", "main")
	w.agent("checkout", "-q", "main")
}

// leave leaves a commit out that has not landed.
func (w *world) leave(how, subject string) {
	w.t.Helper()
	if how == "undo" {
		w.cycle()
		_, err := w.undo()
		check(w.t, err)
		return
	}
	w.git("config", "airlock.review", "land")
	w.cycle()
	if how == "reject" {
		w.verdict(review.Reject, "no", subject)
	} else {
		_, err := w.leaveOut(w.innerOf(subject))
		check(w.t, err)
	}
	w.git("config", "airlock.review", "off")
}

// side lets the agent make a commit on a branch that begins at a commit.
func (w *world) side(name, at string) {
	w.t.Helper()
	w.agent("checkout", "-q", "-b", "side-"+name, at)
	w.commits(name, name, name+"\n")
	w.agent("checkout", "-q", "main")
}

// TestLeftOutRoot leaves the agent's first commit out, which also is a root commit, and lets one land that follows it. Then the agent rewrites
// its history behind that one. The branch gets the same as if the first commit was not a root commit, and never its change.
func TestLeftOutRoot(t *testing.T) {
	notShort(t)
	t.Parallel()
	rewrites := map[string]struct {
		run  func(w *world)
		want string
	}{
		"goes back": {func(w *world) {
			w.agent("reset", "-q", "--hard", "HEAD~1")
			w.commits("z", "z", "z\n")
		}, "a mine z"},
		"amends": {func(w *world) {
			plain("x\nx2\n").write(w.t, w.inner+"/x")
			w.agent("commit", "-q", "-a", "--amend", "-m", "x2")
		}, "a mine x"},
		"makes the first one again": {func(w *world) {
			w.agent("reset", "-q", "--hard", "HEAD~1")
			w.agent("commit", "-q", "--amend", "--date=2031-01-01T00:00:00Z", "-m", "root")
			w.commits("z", "z", "z\n")
		}, "a mine z"},
		"merges a side branch": {func(w *world) {
			w.side("s", "HEAD~1")
			w.agent("merge", "-q", "-m", "m", "side-s")
		}, "a mine s x"},
		"goes back and merges": {func(w *world) {
			w.side("s", "HEAD~1")
			w.agent("reset", "-q", "--hard", "HEAD~1")
			w.commits("z", "z", "z\n")
			w.agent("merge", "-q", "-m", "m", "side-s")
		}, "a mine s z"},
		"makes another root and goes back": {func(w *world) {
			x := w.agent("rev-parse", "HEAD")
			w.agent("rm", "-q", "left")
			w.orphanMain("q", "q")
			w.cycle()
			w.agent("reset", "-q", "--hard", x)
			w.commits("z", "z", "z\n")
		}, "a mine x z"},
		"goes on at another root, left out, too, and back": {func(w *world) {
			x := w.agent("rev-parse", "HEAD")
			w.orphanMain("q", "q")
			w.leave("reject", "q")
			w.commits("y", "y", "y\n")
			w.cycle()
			w.agent("reset", "-q", "--hard", x)
			w.commits("z", "z", "z\n")
		}, "a mine x z"},
	}
	for name, first := range firstCommits {
		for _, out := range []string{"undo", "reject", "drop"} {
			for how, rewrite := range rewrites {
				t.Run(strings.Join([]string{name, out, how}, ", "), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, "sha1", tree{"a": plain("a\n")})
					first(w)
					w.leave(out, "root")
					w.commits("x", "x", "x\n")
					w.wantLanded("x")
					w.mine("mine", "mine\n")
					rewrite.run(w)
					o := w.cycle()
					if got := w.files(); got != rewrite.want || len(o.Holds) > 0 || o.Pending > 0 {
						t.Errorf("the branch has %q, want %q; %+v\n%s\n%s", got, rewrite.want, o, w.git("log", "--graph", "--format=%s", "--stat"), w.states())
					}
					if got := w.git("log", "--full-history", "--no-merges", "--format=%s", "main", "--", "mine", "left"); got != "mine: mine" {
						t.Errorf("%q change the user's file or the one left out", got)
					}
					w.nothingLeft()
				})
			}
		}
	}
}

// files returns the names of the branch's files.
func (w *world) files() string {
	w.t.Helper()
	return strings.ReplaceAll(w.git("ls-tree", "-r", "--name-only", "main"), "\n", " ")
}

// TestRootLikeOthers makes the same random history with a first commit that is a root commit and with one that is none. Commits are left out,
// and the agent goes back, amends and merges. The branch and the review are the same after each cycle.
func TestRootLikeOthers(t *testing.T) {
	notShort(t)
	t.Parallel()
	seedsBelow(t, 4, 300, func(t *testing.T, seed int) {
		want, got := lifeAfter(t, "no root", seed), lifeAfter(t, []string{"amend", "orphan"}[seed%2], seed)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("step %d: with a root commit %s\nwithout %s\nsteps\n%s", i, got[i], want[i], strings.Join(want[:i], "\n"))
			}
		}
	})
}

// lifeAfter lets the agent make a first commit and random other ones, and returns what each step has led to.
func lifeAfter(t *testing.T, first string, seed int) (steps []string) {
	w, r := newWorld(t, "sha1", tree{"f0": plain(sections("f0")), "f1": plain(sections("f1"))}), rand.New(rand.NewPCG(uint64(seed), 12))
	firstCommits[first](w)
	root := w.agent("rev-parse", "HEAD")
	w.leave(one(r, []string{"undo", "reject", "drop"}), "root")
	for n := range 14 {
		name := fmt.Sprint("c", n)
		var after []string // of the agent's history, newest first
		for line := range strings.Lines(w.agent("rev-list", "--first-parent", root+"..HEAD")) {
			after = append(after, strings.TrimSpace(line))
		}
		back := append(after, root)[r.IntN(min(4, len(after)+1))]
		do := one(r, []string{"works", "works", "is left out", "is undone", "goes back", "amends", "merges", "user"})
		switch {
		case do == "user":
			w.mine("mine"+name, name)
		case do == "is undone":
			_, err := w.undo()
			do = fmt.Sprintf("undo %v", err == nil)
		case do == "goes back":
			w.agent("reset", "-q", "--hard", back)
			w.works(r, name)
		case do == "amends" && len(after) > 0:
			plain(name).write(t, filepath.Join(w.inner, "amended"+name))
			w.agent("add", "-A")
			w.agent("commit", "-q", "--amend", "-m", name)
		case do == "merges" && len(after) > 0:
			w.side(name, back)
			w.agent("merge", "-q", "--no-ff", "-m", name+"m", "side-"+name)
		default:
			w.works(r, name)
			if do == "is left out" {
				w.leave(one(r, []string{"reject", "drop"}), name)
			}
		}
		o := w.cycle()
		var held []string
		for _, h := range o.Holds {
			held = append(held, string(h.Reason))
		}
		steps = append(steps, fmt.Sprint(name, " ", do, ": ", w.subjects(), ", ", w.git("rev-parse", "main^{tree}"), " ", w.files(), ", ", slices.Sorted(slices.Values(held)), " ", o.Pending, " ", w.states()))
	}
	w.nothingLeft()
	return steps
}

// works makes a commit of the agent that changes a line of a file or adds one.
func (w *world) works(r *rand.Rand, name string) {
	w.t.Helper()
	file := one(r, []string{"f0", "f1", name})
	content, err := os.ReadFile(filepath.Join(w.inner, file))
	if err != nil {
		content = []byte(name)
	}
	lines := strings.Split(string(content), "\n")
	if i := 2 + 5*r.IntN(6); i < len(lines) {
		lines[i] = "value " + name
	}
	w.commits(name, file, strings.Join(lines, "\n"))
}

// TestSideOfLeftOutCommit merges a side branch that begins at a commit that is left out. The user has a commit that the agent lacks, and the
// side branch's commit does not undo it.
func TestSideOfLeftOutCommit(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]func(w *world){
		"root":    func(w *world) { w.orphanMain("out", "out") },
		"no root": func(w *world) { w.commits("out", "out", "out\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"a": plain("a\n")})
			w.commits("x", "x", "x\n")
			w.wantLanded("x")
			w.mine("mine", "mine\n")
			out(w)
			w.leave("reject", "out")
			w.side("s", "HEAD")
			w.commits("z", "z", "z\n")
			w.agent("merge", "-q", "-m", "m", "side-s")
			w.cycle()
			if got := w.files(); got != "a mine s x z" {
				t.Errorf("the branch has %q", got)
			}
			if got := w.git("log", "--full-history", "--no-merges", "--format=%s", "main", "--", "mine"); got != "mine: mine" {
				t.Errorf("%q change the user's file", got)
			}
		})
	}
}

// TestMergeBringsNoLeftOutCommit merges a landed commit, which has landed without the commit before it, into a branch that begins before both.
// The merge's change since its first parent has the change that was left out, so it waits.
func TestMergeBringsNoLeftOutCommit(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"reject", "undo", "drop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"a": plain("a\n")})
			w.commits("x", "x", "x\n")
			w.wantLanded("x")
			w.agent("branch", "before")
			w.commits("out", "out", "out\n")
			w.leave(how, "out")
			w.commits("z", "z", "z\n")
			w.cycle()
			if got := w.files(); got != "a x z" {
				t.Fatalf("the branch has %q", got)
			}
			w.agent("checkout", "-q", "before")
			w.commits("s", "s", "s\n")
			w.agent("merge", "-q", "-m", "m", "main")
			w.agent("checkout", "-q", "main")
			w.agent("merge", "-q", "--ff-only", "before")
			o := w.cycle()
			if got := w.files(); strings.Contains(got, "out") || len(o.Holds) == 0 {
				t.Errorf("the branch has %q: %+v", got, o)
			}
		})
	}
}
