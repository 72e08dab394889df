package promote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// steps is a random walk of an agent and a user who work on a branch with git itself. It learns from the branch and
// the notes alone which commits landed. Every commit adds its own file, so that the names in a tree show which
// changes it contains. Both change the file "both", which causes conflicts.
type steps struct {
	*world
	r       *rand.Rand
	made    int
	sides   []string                  // inner branches
	images  map[gitops.OID]gitops.OID // outer commits, by their inner ones
	seen    map[gitops.OID]bool       // outer commits that were on the branch
	dropped map[gitops.OID]bool       // inner commits
	tips    []string                  // previous tips of the branch
	done    []string                  // log of the steps, for the reader of a failure
}

// TestAnyStepsLandOnce makes random steps of an agent and a user. Each inner commit must land once, unchanged, on top
// of the user's commits, and its note must be true.
func TestAnyStepsLandOnce(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, few(1, 3)), func(t *testing.T, format string, seed uint64) {
		base := tree{"both": plain("base\n"), "base": plain("base\n")}
		w := newWorld(t, format, base)
		s := &steps{world: w, r: rand.New(rand.NewPCG(seed, 7)), images: map[gitops.OID]gitops.OID{}, dropped: map[gitops.OID]bool{},
			seen: map[gitops.OID]bool{w.record.Base: true}}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("steps:\n%s", strings.Join(s.done, "\n"))
			}
		})
		for _, setting := range []string{"user.name=Ghost", "user.email=ghost@inside.example", "advice.detachedHead=false"} {
			key, value, _ := strings.Cut(setting, "=")
			s.in("config", key, value)
		}
		for range 60 {
			s.step()
			if t.Failed() {
				return
			}
		}
		s.end()
	})
}

// in runs git as the agent and out as the user. Both report whether git succeeded.
func (s *steps) in(args ...string) bool  { return s.tried("agent", s.inner, args) }
func (s *steps) out(args ...string) bool { return s.tried("user", s.Top, args) }

func (s *steps) tried(who, dir string, args []string) bool {
	_, err := tryGit(dir, "", args...)
	s.done = append(s.done, fmt.Sprintf("%s: git %s: %t", who, strings.Join(args, " "), err == nil))
	return err == nil
}

func (s *steps) note(format string, args ...any) {
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

// step lets one of them make a step, and checks the result.
func (s *steps) step() {
	s.t.Helper()
	if s.r.IntN(2) == 0 {
		for range 1 + s.r.IntN(3) {
			s.agentStep()
		}
	} else {
		s.userStep()
	}
	s.recordLanded(false, "")
	if s.r.IntN(3) > 0 {
		s.promote(promote.Options{})
	}
}

func (s *steps) agentStep() {
	switch s.r.IntN(14) {
	case 0, 1, 2, 3:
		s.agentCommits()
	case 4:
		name := fmt.Sprintf("s%d", s.made)
		if s.in("checkout", "-q", "-b", name, one(s.r, []string{"HEAD", "HEAD~1", "HEAD~2"})) {
			s.sides = append(s.sides, name)
			s.agentCommits()
			s.in("checkout", "-q", "main")
		}
	case 5, 6:
		if len(s.sides) > 0 {
			s.inMerge(one(s.r, s.sides))
		}
	case 7: // a criss-cross
		if len(s.sides) > 0 {
			side := one(s.r, s.sides)
			s.in("tag", "-f", "before")
			s.in("checkout", "-q", side)
			s.inMerge("before")
			s.in("checkout", "-q", "main")
			s.inMerge(side + "^1")
		}
	case 8:
		s.made++
		s.in("commit", "-q", "--amend", "--allow-empty", "-m", fmt.Sprintf("amended %d", s.made))
	case 9:
		s.in("reset", "-q", "--hard", one(s.r, []string{"HEAD~1", "HEAD~2", "HEAD~3"}))
	case 10:
		if !s.in("rebase", "-q", "-X", "theirs", "--onto", one(s.r, []string{"HEAD~3", "HEAD~4", string(s.record.Root)}), one(s.r, []string{"HEAD~2", "HEAD~1"})) {
			s.in("rebase", "--abort")
		}
	case 11:
		s.takesBack()
	case 12:
		s.in("revert", "--no-edit", one(s.r, []string{"HEAD", "HEAD~1"}))
		s.in("revert", "--abort")
	case 13:
		s.in("cherry-pick", "--allow-empty", "--keep-redundant-commits", one(s.r, []string{"HEAD", "HEAD~1", "ORIG_HEAD"}))
		s.in("cherry-pick", "--abort")
	}
}

func (s *steps) agentCommits() {
	s.made++
	name := fmt.Sprintf("a%d", s.made)
	s.write(s.inner, name, name+"\n")
	if s.r.IntN(8) == 0 {
		s.write(s.inner, "both", name+"\n")
	}
	s.in("add", "-A")
	s.in("commit", "-q", "-m", name)
}

func (s *steps) inMerge(what string) {
	if !s.in("merge", "-q", "--allow-unrelated-histories", one(s.r, []string{"--ff", "--no-ff"}), "-X", one(s.r, []string{"ours", "theirs"}), "--no-edit", what) {
		s.in("merge", "--abort")
	}
}

// takesBack lets the agent fetch outer commits, over the network or from the user, and continue from there.
func (s *steps) takesBack() {
	if !s.in("fetch", "-q", s.Top, one(s.r, []string{s.record.Branch, s.record.Ref("promoted")})) {
		return
	}
	switch s.r.IntN(4) {
	case 0:
		s.in("reset", "-q", "--hard", "FETCH_HEAD")
	case 1:
		if !s.in("rebase", "-q", "-X", "theirs", "FETCH_HEAD") {
			s.in("rebase", "--abort")
		}
	default:
		s.inMerge("FETCH_HEAD")
	}
}

func (s *steps) write(top, name, content string) {
	s.t.Helper()
	check(s.t, os.WriteFile(filepath.Join(top, name), []byte(content), 0o644))
}

func (s *steps) userStep() {
	before := s.git("rev-parse", "HEAD")
	switch s.r.IntN(15) {
	case 0, 1:
		s.userCommits()
	case 2:
		if before != string(s.record.Base) {
			s.made++
			s.out("commit", "-q", "--amend", "-m", fmt.Sprintf("mine, amended %d", s.made))
		}
	case 3:
		s.rewind()
	case 4:
		if len(s.tips) > 0 {
			s.out("merge", "-q", "-X", "ours", "--no-edit", one(s.r, s.tips))
		}
	case 5:
		s.rebase()
	case 6, 7:
		s.userTakes()
	case 8:
		s.out("revert", "--no-edit", "HEAD")
	case 9:
		s.out("checkout", "-q", "-B", "elsewhere")
		if s.r.IntN(2) == 0 {
			s.userCommits()
		}
		s.promote(promote.Options{})
		s.out("checkout", "-q", s.record.BranchName().Raw())
		if s.r.IntN(2) == 0 {
			s.out("merge", "-q", "-X", "ours", "--no-edit", "elsewhere")
		}
	case 10:
		s.engine = newEngine(s.Repository, s.record, s.inner)
		s.note("restart")
	case 11:
		s.out("config", "airlock.autoLand", one(s.r, []string{"true", "false", "false"}))
	case 12:
		s.upTo()
	case 13:
		s.drop()
	case 14:
		s.killed()
	}
	s.abort()
	s.tips = append(s.tips, before)
}

// abort aborts the operation in which a user command stopped.
func (s *steps) abort() {
	if operation := s.Operation(); operation != "" {
		s.out(operation, "--abort")
	}
}

func (s *steps) userCommits() {
	s.made++
	name := fmt.Sprintf("u%d", s.made)
	s.write(s.Top, name, name+"\n")
	s.out("add", name)
	if s.r.IntN(10) == 0 {
		s.write(s.Top, "both", name+"\n")
		s.out("add", "both")
	}
	s.out("commit", "-q", "-m", name)
}

// rewind resets the branch to an older commit, or forward again.
func (s *steps) rewind() {
	to := one(s.r, []string{"HEAD~1", "HEAD~2", "HEAD~3", string(s.record.Base)})
	if len(s.tips) > 0 && s.r.IntN(2) == 0 {
		to = one(s.r, s.tips)
	}
	s.out("reset", "-q", "--hard", to)
}

func (s *steps) rebase() {
	if !s.out("rebase", "-q", "-X", "theirs", "--onto", one(s.r, []string{"HEAD~2", "HEAD~3", "HEAD~4", string(s.record.Base)}), one(s.r, []string{"HEAD~2", "HEAD~1"})) {
		s.out("rebase", "--abort")
		return
	}
}

// userTakes lets the user merge pending commits by hand.
func (s *steps) userTakes() {
	pending := s.record.Ref("pending")
	if s.ref(pending) == "" {
		return
	}
	what := pending + one(s.r, []string{"", "", "~1", "~2", "^2", "~1^2"})
	switch s.r.IntN(6) {
	case 0, 1:
		s.out("merge", "-q", "--ff-only", what)
	case 2:
		s.out("cherry-pick", "--allow-empty", "--keep-redundant-commits", what)
	case 3:
		s.out("merge", "-q", "--squash", what)
		if !s.out("commit", "-q", "--allow-empty", "-m", "squashed") {
			s.out("reset", "-q", "--hard")
		}
	default:
		s.out("merge", "-q", "-X", "ours", "--no-edit", what)
	}
	if s.r.IntN(3) == 0 {
		s.made++
		s.out("commit", "-q", "--amend", "-m", fmt.Sprintf("taken and amended %d", s.made))
	} else if s.r.IntN(4) == 0 {
		s.out("reset", "-q", "--hard", "HEAD~1")
	}
}

// upTo promotes up to one of the waiting commits.
func (s *steps) upTo() {
	s.promoteAway()
	pending := s.ref(s.record.Ref("pending"))
	if pending == "" {
		return
	}
	ids := strings.Fields(s.git("rev-list", "--first-parent", s.record.Branch+".."+string(pending)))
	if len(ids) == 0 {
		return
	}
	id := gitops.OID(one(s.r, ids))
	inner := noteValue(s.notes()[id], "Inner-Commit")
	if inner == "" {
		return // the user went back behind this commit
	}
	s.note("promote --upto %s, which is %s", id, inner)
	o := s.promote(promote.Options{Land: true, UpTo: one(s.r, []string{string(id), inner[:10], string(id[:12])})})
	if len(o.Holds) > 0 {
		return
	}
	if got := noteValue(s.notes()[s.ref(s.record.Ref("promoted"))], "Inner-Commit"); got != inner {
		s.t.Errorf("promote --upto %s landed up to %s, not %s", id, got, inner)
	}
}

// promoteAway promotes while another branch is checked out, so that the agent's commits become pending.
func (s *steps) promoteAway() {
	s.out("config", "airlock.autoLand", "false")
	s.promote(promote.Options{})
}

func (s *steps) drop() {
	s.promoteAway()
	waiting := s.waiting()
	if len(waiting) == 0 {
		return
	}
	inner := one(s.r, waiting)
	left, err := s.leaveOut(string(inner[:12]))
	s.note("promote --drop %s: %v %v", inner, left, err)
	check(s.t, err)
	s.dropped[inner] = true
	s.promote(promote.Options{Land: true})
}

func (s *steps) killed() {
	request, err := json.Marshal(daemonRequest{s.Top, s.inner, s.record.ID, ""})
	check(s.t, err)
	step := one(s.r, killSteps)
	before := s.tip()
	s.note("killed: %s", s.killDaemon(string(request), step, 400_000_000, s.r.IntN(2) == 0))
	s.engine = newEngine(s.Repository, s.record, s.inner)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // git releases its locks in a moment
		err := land.Recover(s.t.Context(), s.Repository, s.engine.Dir())
		if err == nil {
			break
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
	s.recordLanded(true, before)
}

func (s *steps) tip() gitops.OID { return s.ref(s.record.Branch) }

// promote makes cycles and checks the landed commits.
func (s *steps) promote(options promote.Options) ledger.Outcome {
	s.t.Helper()
	before := s.tip()
	o, err := s.engine.Drain(s.t.Context(), options)
	var reasons []string
	for _, h := range o.Holds {
		reasons = append(reasons, string(h.Reason)+" "+h.Message)
	}
	s.note("promote %+v: landed %d, pending %d, %q", options, o.Landed, o.Pending, reasons)
	if err != nil {
		if errors.Is(err, history.ErrNotPending) {
			s.t.Errorf("promote: %v", err)
			return o
		}
		s.t.Fatal(err)
	}
	s.followDropped()
	s.recordLanded(true, before)
	return o
}

// followDropped reads which commits are left out. The decision on a dropped commit follows a copy with the same message, if the agent has replaced it.
func (s *steps) followDropped() {
	s.t.Helper()
	d, err := ledger.ReadDecisions(s.engine.Dir())
	check(s.t, err)
	message := func(id gitops.OID) string { return git(s.t, s.inner, "log", "-1", "--format=%B", string(id)) }
	for _, x := range d.Dropped {
		if s.dropped[x.Commit] {
			continue
		}
		for old := range s.dropped {
			if d.DropOf(old) == nil && message(old) == message(x.Commit) {
				delete(s.dropped, old)
				s.dropped[x.Commit] = true
				break
			}
		}
		if !s.dropped[x.Commit] {
			s.t.Errorf("%s is left out, and nobody has dropped it", x.Commit)
		}
	}
}
