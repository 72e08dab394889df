package promote_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
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
// merge of this ref brings nothing back that the user took off the branch, and undoes nothing of the user's.
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
// and rebases the branch, and the agent goes on after the conflict.
func TestConflictBringsOnlyItself(t *testing.T) {
	t.Parallel()
	cases := 16
	if os.Getenv("AIRLOCK_TEST_LONG") != "" {
		cases = 500
	}
	for seed := range cases {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 11))
			files := tree{}
			for n := range 4 {
				files[fmt.Sprint("f", n)] = plain("0\n")
			}
			w := newWorld(t, "sha1", files)
			conflicts := 0
			for n := 1; n < 40 && conflicts < 3; n++ {
				file, text := fmt.Sprint("f", r.IntN(4)), fmt.Sprint(n, "\n")
				switch pick := r.IntN(9); {
				case pick < 4 || conflicts > 0:
					w.commits(fmt.Sprint(file, " ", n), file, "agent "+text)
				case pick < 6:
					w.mine(file, "user "+text)
				case pick == 6 && w.isLanded("HEAD"):
					w.git("revert", "--no-edit", "HEAD")
				case pick == 7:
					w.colleague(fmt.Sprint("colleague", n))
				}
				if o := w.cycle(); o.Held(ledger.Conflict) {
					conflicts++
					w.wantOwnChanges()
				}
			}
		})
	}
}

// isLanded reports whether a commit of the branch is the agent's.
func (w *world) isLanded(commit string) bool {
	w.t.Helper()
	return strings.HasPrefix(w.git("log", "-1", "--format=%s", commit), "f")
}
