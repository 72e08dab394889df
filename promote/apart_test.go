package promote_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// colleague makes a commit on top of the airlock's base, and rebases the branch onto it, as git pull --rebase does.
func (w *world) colleague(name string) {
	w.t.Helper()
	branch := strings.TrimPrefix(w.record.Branch, "refs/heads/")
	w.git("checkout", "-q", "--detach", string(w.record.Base))
	w.mine(name, "colleague's\n")
	upstream := w.git("rev-parse", "HEAD")
	w.git("checkout", "-q", branch)
	w.git("rebase", "-q", "--onto", upstream, string(w.record.Base))
}

// wantOwnChanges checks that each commit of the ref pending that is not on the branch changes only its own file, which its subject names. Then a
// merge of this ref does not bring back a commit that the user reverted, and does not undo a commit of the user.
func (w *world) wantOwnChanges() {
	w.t.Helper()
	for _, id := range strings.Fields(w.git("rev-list", w.record.Branch+".."+w.record.Ref("pending"))) {
		file, _, _ := strings.Cut(w.git("log", "-1", "--format=%s", id), " ")
		if got := w.git("diff-tree", "-r", "--no-commit-id", "--name-only", id); got != file {
			w.t.Fatalf("the pending commit %s of the file %s changes %q:\n%s", id, file, got, w.git("log", "--graph", "--format=%h %s", "--name-only", w.record.Branch, w.record.Ref("pending")))
		}
	}
}

// TestConflictBringsOnlyItself lets random commits of the agent and of the user meet until some conflict. The user also reverts landed commits
// and rebases the branch, also after the conflict, and the agent goes on.
func TestConflictBringsOnlyItself(t *testing.T) {
	notShort(t)
	t.Parallel()
	seedsBelow(t, 16, 500, func(t *testing.T, seed int) {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		files := tree{}
		for n := range 4 {
			files[fmt.Sprint("f", n)] = plain("0\n")
		}
		w := newWorld(t, "sha1", files)
		conflicts := 0
		for n := 1; n < 40 && conflicts < 3; n++ {
			file, text := fmt.Sprint("f", r.IntN(4)), fmt.Sprint(n, "\n")
			switch pick := r.IntN(10); {
			case pick == 7:
				w.colleague(fmt.Sprint("colleague", n))
			case pick < 4 || conflicts > 0:
				w.commits(fmt.Sprint(file, " ", n), file, "agent "+text)
			case pick < 6:
				w.mine(file, "user "+text)
			case pick == 9:
				w.mine(fmt.Sprint("f", (n+1)%4), "user "+text)
				w.mine(file, "synced "+text)
				_, _ = w.sync()
				if r.IntN(2) == 0 {
					w.git("revert", "--no-edit", "HEAD")
				}
			case pick == 6 && w.isLanded("HEAD"):
				w.git("revert", "--no-edit", "HEAD")
			}
			if o := w.cycle(); o.Held(ledger.Conflict) {
				conflicts++
				w.wantOwnChanges()
			}
		}
	})
}

// isLanded reports whether a commit of the branch is the agent's.
func (w *world) isLanded(commit string) bool {
	w.t.Helper()
	return strings.HasPrefix(w.git("log", "-1", "--format=%s", commit), "f")
}

// TestConflictAfterSync lets the user revert a commit that the agent has by sync, before the agent changes one of its two files.
func TestConflictAfterSync(t *testing.T) {
	t.Parallel()
	for _, landed := range []bool{false, true} {
		w := newWorld(t, "sha1", tree{"f0": plain("0\n"), "f1": plain("0\n")})
		if landed {
			w.commits("f2 1", "f2", "agent\n")
			w.cycle()
		}
		check(t, os.WriteFile(filepath.Join(w.Top, "f1"), []byte("user\n"), 0o644))
		w.mine("f0", "user\n")
		w.git("commit", "-q", "--amend", "-a", "--no-edit")
		_, err := w.sync()
		check(t, err)
		w.git("revert", "--no-edit", "HEAD")
		w.commits("f1 2", "f1", "agent, on the user's\n")
		if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 1 {
			t.Fatalf("%+v", o)
		}
		w.wantOwnChanges()
	}
}

// TestConflictWithoutRejected lets the user amend, remove or squash a commit that landed without a rejected one. The next commit conflicts, and must not
// bring what was rejected.
func TestConflictWithoutRejected(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string]func(w *world){
		"amend": func(w *world) {
			check(w.t, os.WriteFile(filepath.Join(w.Top, "k"), []byte("mine\n"), 0o644))
			w.git("commit", "-q", "-a", "--amend", "-m", "mine: k")
		},
		"reset": func(w *world) { w.git("reset", "-q", "--hard", "HEAD~1") },
		"squash": func(w *world) {
			w.git("reset", "-q", "--soft", "HEAD~1")
			w.mine("k", "mine\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.agent("rm", "-q", "a")
			w.agent("commit", "-q", "-m", "rejected")
			w.commits("k 1", "k", "1\n")
			w.cycle()
			w.verdict(review.Reject, "no", "rejected")
			w.verdict(review.Approve, "", "k 1")
			w.wantLanded("k 1")
			w.git("config", "airlock.review", "off")
			rewrite(w)
			w.commits("k 2", "k", "1\n2\n")
			o := w.cycle()
			if !o.Held(ledger.Conflict) || o.Pending != 1 || len(o.Holds[0].Next) != 1 {
				t.Fatalf("%+v", o)
			}
			w.wantOwnChanges()
			if back := strings.Contains(o.Holds[0].Next[0], "brings them back"); back != (name == "reset") {
				t.Errorf("next %q", o.Holds[0].Next)
			}
		})
	}
}

// TestConflictOfMovedFile lets the agent rename the file that the user changes, or make a folder of it. The user has taken half of a landed commit back.
func TestConflictOfMovedFile(t *testing.T) {
	t.Parallel()
	lines := func(five, twenty string) string {
		return strings.Repeat("line\n", 4) + five + "\n" + strings.Repeat("line\n", 14) + twenty + "\n" + strings.Repeat("line\n", 10)
	}
	for name, c := range map[string]struct{ user, file, text, path string }{
		"rename":  {lines("agent", "user"), "p2", lines("agent's next", "agent"), "p2"},
		"folder":  {lines("agent", "user"), "prices/p", "p\n", "prices"},
		"removed": {"", "p2", lines("agent's next", "line"), "p2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"stock": plain("0\n"), "prices": plain(lines("line", "line"))})
			plain("agent\n").write(t, w.inner+"/stock")
			w.commits("landed", "prices", lines("agent", "line"))
			w.cycle()
			w.git("checkout", "-q", "HEAD~1", "--", "stock")
			w.git("commit", "-q", "--amend", "-m", "mine: without stock")
			if c.user == "" {
				w.git("rm", "-q", "prices")
				w.git("commit", "-q", "-m", "mine: removed")
			} else {
				w.mine("prices", c.user)
			}
			w.agent("rm", "-q", "prices")
			w.commits("moved", c.file, c.text)
			if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 1 || len(o.Holds[0].Paths) != 1 || o.Holds[0].Paths[0] != c.path {
				t.Fatalf("%+v", o)
			}
			if changed := w.git("diff", "--no-renames", "--name-only", w.record.Ref("pending")+"^!"); strings.Contains(changed, "stock") {
				t.Errorf("the pending commit changes %q", changed)
			}
		})
	}
}

// TestConflictIsRejected rejects a conflicting commit that the agent has reverted. The hold then is about the commit that reverts it.
func TestConflictIsRejected(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("before", "before", "1\n")
	w.commits("conflicting", "a", "theirs\n")
	w.commits("reverting", "a", "a\n")
	w.commits("after", "after", "2\n")
	w.cycle()
	w.mine("a", "mine\n")
	w.cycle()
	conflicting := w.innerOf("conflicting")
	if o := w.cycle(); !o.Held(ledger.Conflict) || !strings.Contains(o.Holds[0].Message, conflicting[:12]) {
		t.Fatalf("%+v", o)
	}
	w.verdict(review.Reject, "no", "conflicting")
	if o := w.cycle(); !o.Held(ledger.Conflict) || !strings.Contains(o.Holds[0].Message, w.innerOf("reverting")[:12]) {
		t.Errorf("%+v", o)
	}
	w.wantStates("before:new conflicting:rejected reverting:blocked after:new")
}

// TestConflictOfManyChanges finds the place of a conflicting commit below many changes of the user in the same file.
func TestConflictOfManyChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f0": plain("0\n"), "f1": plain("0\n")})
	for n := range 35 {
		w.mine("f1", fmt.Sprint("user ", n, "\n"))
	}
	w.commits("f0 1", "f0", "agent\n")
	w.cycle()
	w.git("revert", "--no-edit", "HEAD")
	w.commits("f1 2", "f1", "agent\n")
	if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 1 {
		t.Fatalf("%+v", o)
	}
	w.wantOwnChanges()
}

// TestConflictAboveUnrelatedHistory lets the user join the branch to a history with another root, whose root commit changes the conflicting file.
func TestConflictAboveUnrelatedHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f0": plain("0\n"), "f1": plain("0\n")})
	w.commits("f0 1", "f0", "agent\n")
	w.cycle()
	branch := strings.TrimPrefix(w.record.Branch, "refs/heads/")
	w.git("reset", "-q", "--hard", "HEAD~1")
	w.git("checkout", "-q", "--orphan", "other")
	w.mine("f1", "user\n")
	w.git("merge", "-q", "--allow-unrelated-histories", "-X", "ours", "-m", "join", branch)
	w.git("branch", "-f", branch)
	w.git("checkout", "-q", branch)
	w.commits("f1 2", "f1", "agent\n")
	if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending == 0 {
		t.Fatalf("%+v", o)
	}
}

// TestConflictOfMerge lets the agent go on after a conflicting merge that brings a root commit. The commits on top of it are not built on the user's.
func TestConflictOfMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f0": plain("0\n"), "f1": plain("0\n")})
	w.commits("f0 1", "f0", "agent\n")
	w.cycle()
	w.mine("f1", "user\n")
	w.agent("checkout", "-q", "--orphan", "root")
	w.agent("rm", "-rqf", ".")
	w.commits("r", "r", "r\n")
	w.agent("checkout", "-q", "main")
	w.agent("merge", "-q", "--no-commit", "--allow-unrelated-histories", "root")
	w.commits("f1 2", "f1", "agent\n")
	if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 2 {
		t.Fatalf("%+v", o)
	}
	w.agent("checkout", "-q", "-b", "side", "HEAD~1")
	w.commits("x", "x", "x\n")
	w.agent("checkout", "-q", "main")
	w.agent("merge", "-q", "-m", "merge", "side")
	if o := w.cycle(); len(o.Holds) != 1 || o.Pending != 4 {
		t.Fatalf("%+v", o)
	}
	if base := w.git("merge-base", w.record.Branch, w.record.Ref("pending")); base != w.git("rev-parse", "HEAD~1") {
		t.Errorf("the pending commits are on %s:\n%s", base, w.git("log", "--graph", "--format=%h %s", w.record.Branch, w.record.Ref("pending")))
	}
}

// TestConflictAppliesNowhere lets a commit conflict with a commit of the user that is older than the landed one that it needs, so that no commit of the
// branch has the lines that it changes. The user has reverted the rest of the landed commit, also in the same file.
func TestConflictAppliesNowhere(t *testing.T) {
	t.Parallel()
	lines := func(one, five, twenty string) string {
		return one + "\n" + strings.Repeat("line\n", 4) + five + "\n" + strings.Repeat("line\n", 14) + twenty + "\n" + strings.Repeat("line\n", 10)
	}
	for _, held := range []bool{false, true} {
		w := newWorld(t, "sha1", tree{"stock": plain("0\n"), "prices": plain(lines("line", "line", "line"))})
		w.mine("prices", lines("line", "line", "mine"))
		plain("agent\n").write(t, w.inner+"/stock")
		w.commits("landed", "prices", lines("agent", "agent", "line"))
		w.cycle()
		check(t, os.WriteFile(filepath.Join(w.Top, "stock"), []byte("0\n"), 0o644))
		w.mine("prices", lines("line", "agent", "mine"))
		w.git("commit", "-q", "--amend", "-a", "--no-edit")
		if held {
			w.commits("held", ".mcp.json", "{}\n")
		}
		w.commits("next", "prices", lines("agent", "agent's next", "agent's next"))
		w.commits("last", "prices", lines("agent", "agent's last", "agent's last"))
		if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending == 0 {
			t.Fatalf("%+v", o)
		}
		pending := w.record.Ref("pending")
		if changed := w.git("diff", "--name-only", w.git("merge-base", "HEAD", pending), pending); strings.Contains(changed, "stock") {
			t.Errorf("%t: the pending commits change %q", held, changed)
		}
		if text := w.git("show", pending+":prices"); !strings.HasPrefix(text, "line\n") || strings.Count(text, "agent's") != 2 {
			t.Errorf("%t: the pending file is %q", held, text)
		}
		if exec.Command("git", "-C", w.Top, "merge", "-q", pending).Run() == nil {
			t.Errorf("%t: the merge has no conflict", held)
		}
	}
}

// TestConflictKeepsWhatIsMoved lets a commit that applies nowhere change files that a landed one moved, so that git finds their other sides at other
// paths. prices is the file that conflicts with the user's commit.
func TestConflictKeepsWhatIsMoved(t *testing.T) {
	t.Parallel()
	lines := func(edits ...int) string {
		text := ""
		for n := range 30 {
			if text += "line"; slices.Contains(edits, n) {
				text += " changed"
			} else if slices.Contains(edits, -n) {
				text += " of the agent's next"
			}
			text += "\n"
		}
		return text
	}
	for name, c := range map[string]struct {
		landed, next, want string // commands inside, and a path of the merge with its content
		content            string
	}{
		"new file of a renamed folder": {"git mv dir d2", "echo new >d2/new", "new", "new\n"},
		"renamed file":                 {"git mv dir/a a2", "sed -i '5s/.*/AGENT/' a2", "a", strings.Replace(lines(), "line\nline\nline\nline\nline\n", "line\nline\nline\nline\nAGENT\n", 1)},
		"file in place of a folder":    {"git rm -q dir/b; sed -i 5s/.*/x/ dir/a", "git rm -rq dir; echo file >dir", "dir", "file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"prices": plain(lines()), "dir/a": plain(lines()), "dir/b": plain("b\n")})
			w.mine("prices", lines(20))
			w.agent("-c", "alias.do=!"+c.landed, "do")
			w.commits("landed", "prices", lines(5))
			w.cycle()
			w.agent("-c", "alias.do=!"+c.next, "do")
			w.commits("next", "prices", lines(-5, -20))
			o := w.cycle()
			if !o.Held(ledger.Conflict) || o.Pending != 1 {
				t.Fatalf("%+v", o)
			}
			pending := w.record.Ref("pending")
			found := false
			for _, path := range strings.Fields(w.git("ls-tree", "-r", "--name-only", pending)) {
				found = found || (path == c.want || filepath.Base(path) == c.want) && w.git("show", pending+":"+path)+"\n" == c.content
			}
			if !found {
				t.Errorf("the pending tree lacks %s:\n%s", c.want, w.git("diff", w.git("merge-base", "HEAD", pending), pending))
			}
		})
	}
}

// TestConflictWithoutUndoneLine undoes a line of a file that the agent renames afterwards, in a commit that applies nowhere.
func TestConflictWithoutUndoneLine(t *testing.T) {
	t.Parallel()
	lines := func(five, twelve, twenty string) string {
		const four = "line\nline\nline\nline\n"
		return four + five + "\n" + four + twelve + "\n" + four + twenty + "\n" + four
	}
	w := newWorld(t, "sha1", tree{"prices": plain(lines("5", "12", "20"))})
	w.mine("prices", lines("5", "12", "mine"))
	w.commits("undone", "prices", lines("5", "undone", "20"))
	w.cycle()
	_, err := w.undo()
	check(t, err)
	w.commits("landed", "prices", lines("agent", "undone", "20"))
	w.cycle()
	w.agent("mv", "prices", "p2")
	w.commits("next", "p2", lines("next", "undone", "next"))
	if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 1 {
		t.Fatalf("%+v", o)
	}
	if got := w.git("show", w.record.Ref("pending")+":p2") + "\n"; got != lines("next", "12", "next") {
		t.Errorf("the pending file is %q", got)
	}
}
