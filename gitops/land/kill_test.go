package land

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// killFixture is a landing with one change of each kind.
type killFixture struct {
	*world
	old, new gitops.OID
	request  Landing
	before   picture
	first    picture // before the landing that a landing back undoes
}

func newKillFixture(t *testing.T) *killFixture {
	w := newWorld(t)
	w.Run("update-ref", "refs/airlock/7f3a/pending", string(w.CommitAll(gitopstest.Files{"z": "1"})))
	w.Run("update-ref", notesRef, "HEAD")
	old := w.CommitAll(gitopstest.Files{".gitattributes": "", "mod.txt": "1\n", "rm": "1", "dir/a": "1", "dir/b": "1", "file": "1", "link": gitopstest.LinkTo + "rm", "mode": "1", "keep": "1"})
	new := w.Built(old, gitopstest.Files{".gitattributes": "*.txt text eol=crlf\n", "mod.txt": "2\n", "rm": gitopstest.Absent, "dir/a": gitopstest.Absent, "dir/b": gitopstest.Absent, "dir": "2",
		"file": gitopstest.Absent, "file/x": "2", "file/y": "2", "link": gitopstest.LinkTo + "keep", "mode": gitopstest.Execute + "1", "add/deep/f": "2"})
	// The user's work at other paths.
	w.Write(gitopstest.Files{"keep": "mine", "untracked": "mine", "added": "mine"})
	w.Run("add", "added")
	rest()
	k := &killFixture{world: w, old: old, new: new, request: w.landing(old, new)}
	k.request.Refs = append(k.request.Refs, gitops.RefUpdate{Ref: "refs/airlock/7f3a/pending", Old: w.At("refs/airlock/7f3a/pending")})
	k.request.First = []gitops.RefUpdate{{Ref: notesRef, Old: w.At(notesRef), New: old}, {Ref: notesRef + "-2", New: old}}
	k.before = w.picture()
	return k
}

// kill runs the landing, which may begin with a recovery, in another process that kills itself at a step. It returns
// false if the process reached its end.
func (k *killFixture) kill(step string) bool {
	k.T.Helper()
	request, err := json.Marshal(helperRequest{Top: k.Top, Landing: k.request})
	gitopstest.Check(k.T, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AIRLOCK_TEST_LAND="+string(request), "AIRLOCK_TEST_KILL="+step)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return true
	}
	if err != nil {
		k.T.Fatalf("landing to be killed at %s: %v\n%s", step, err, out)
	}
	return false
}

// mustKill is kill for a step that the landing has.
func (k *killFixture) mustKill(step string) {
	k.T.Helper()
	if !k.kill(step) {
		k.T.Fatalf("not killed at %s", step)
	}
}

func (k *killFixture) recover() error {
	k.T.Helper()
	return Recover(k.T.Context(), k.Repository, k.State)
}

// isBefore checks that everything is as before the landing.
func (k *killFixture) isBefore() {
	k.T.Helper()
	k.picture().equals(k.T, k.before)
	k.NothingLeft()
}

// isAfter checks that everything is as after a complete landing.
func (k *killFixture) isAfter() {
	k.T.Helper()
	k.landed(k.new)
	if id := k.At("refs/airlock/7f3a/pending"); id != "" {
		k.T.Errorf("pending is still at %s", id)
	}
	for _, u := range k.request.First {
		if id := k.At(u.Ref); id != u.New {
			k.T.Errorf("%s is at %s, want %s", u.Ref, id, u.New)
		}
	}
	k.wantStatus("A  added\n M keep\n?? untracked")
	tree := k.tree()
	for name, want := range map[string]string{"mod.txt": "-rw-r--r-- 2\r\n", "dir": "-rw-r--r-- 2", "file/x": "-rw-r--r-- 2", "mode": "-rwxr-xr-x 1",
		"link": "Lrwxrwxrwx keep", "add/deep/f": "-rw-r--r-- 2", "keep": "-rw-r--r-- mine", "untracked": "-rw-r--r-- mine"} {
		if tree[name] != want {
			k.T.Errorf("%s is %q, want %q", name, tree[name], want)
		}
	}
	if _, there := tree["rm"]; there {
		k.T.Error("rm is still there")
	}
}

// swings is the number of files that the fixture's landing moves or removes.
const swings = 12

func killSteps() []string {
	steps := []string{stepPrepared, stepLocked, stepJournal}
	for i := range swings {
		steps = append(steps, fmt.Sprint(stepSwing, ":", i+1))
	}
	return append(steps, stepTree, stepRefs, stepIndex)
}

func TestKilledLandingIsBeforeOrAfter(t *testing.T) {
	t.Parallel()
	for _, step := range killSteps() {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := newKillFixture(t)
			if !k.kill(step) {
				t.Fatal("not killed: the step is not there")
			}
			for range 2 { // once more does no harm
				gitopstest.Check(t, k.recover())
				if step == stepRefs || step == stepIndex {
					k.isAfter()
				} else {
					k.isBefore()
				}
			}
			if step == stepRefs || step == stepIndex {
				return
			}
			// What was taken back can be done again.
			gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
			k.isAfter()
		})
	}
}

func TestLandingHasNoOtherSteps(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	if k.kill(fmt.Sprint(stepSwing, ":", swings+1)) {
		t.Errorf("there are more than %d swings", swings)
	}
	k.isAfter()
}

// The landing is killed between any two system calls, together with all its git processes.
func TestLandingKilledAtRandom(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	request, err := json.Marshal(helperRequest{Top: k.Top, Landing: k.request})
	gitopstest.Check(t, err)
	landed := 0
	for round := range 40 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "AIRLOCK_TEST_LAND="+string(request))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		gitopstest.Check(t, cmd.Start())
		time.Sleep(time.Duration(round) * 1500 * time.Microsecond)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		gitopstest.Check(t, k.recover())
		if k.At("refs/heads/main") == k.old {
			k.awaitUnlocked()
			k.isBefore()
		} else {
			k.isAfter()
			landed++
			k.undo()
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d of 40 landed", landed)
}

// awaitUnlocked waits for an update-ref that was not killed and has not yet read the end of its input. Before there
// is a journal, recovery does not have to know of it.
func (k *killFixture) awaitUnlocked() {
	k.T.Helper()
	isLock := func(p string) bool { return strings.HasSuffix(p, ".lock") }
	for range 6000 {
		if !slices.ContainsFunc(k.LeftOver(), isLock) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// undo restores everything for another attempt.
func (k *killFixture) undo() {
	k.T.Helper()
	k.Run("stash", "push", "-q", "--include-untracked")
	k.Run("reset", "-q", "--hard", string(k.old))
	k.Run("stash", "pop", "-q", "--index")
	k.Run("update-ref", "-d", "refs/stash")
	k.Run("update-ref", "-d", "refs/airlock/7f3a/promoted")
	k.Run("update-ref", "refs/airlock/7f3a/pending", string(k.request.Refs[1].Old))
	rest()
	k.before = k.picture()
}

// A recovery can be killed at any step, too.
func TestKilledRecovery(t *testing.T) {
	t.Parallel()
	for _, at := range []int{1, 4, swings} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			k := newKillFixture(t)
			k.mustKill(stepTree)
			for range 3 {
				k.kill(fmt.Sprint(stepSwing, ":", at)) // dies in the recovery that a landing begins with, or after it
			}
			gitopstest.Check(t, k.recover())
			k.isBefore()
		})
	}
}

// A power loss can undo the moves of files by the killed process.
func TestRecoveryFinishesFiles(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	k.mustKill(stepRefs)
	k.Write(gitopstest.Files{"rm": "1", "mod.txt": "1\n", "dir": gitopstest.Absent, "file": gitopstest.Absent, "add/deep/f": gitopstest.Absent})
	k.Write(gitopstest.Files{"dir/a": "1", "dir/b": "1", "file": "1"})
	gitopstest.Check(t, k.recover())
	k.isAfter()
}

func TestRecoveryNeverOverwrites(t *testing.T) {
	t.Parallel()
	collides := func(paths ...string) func(*killFixture, error) {
		return func(k *killFixture, err error) {
			k.T.Helper()
			var collision *CollisionError
			if !errors.As(err, &collision) || !slices.Equal(collision.Paths, paths) {
				k.T.Fatalf("Recover: %v, want a collision at %q", err, paths)
			}
			if _, err := os.Stat(filepath.Join(k.GitDir, "index.lock")); err == nil {
				k.T.Error("the user cannot mend it: the index is locked")
			}
			if err := Land(k.T.Context(), k.Repository, k.request); !errors.As(err, &collision) {
				k.T.Errorf("Land over an unfinished journal: %v, want a collision", err)
			}
		}
	}
	fine := func(k *killFixture, err error) { k.T.Helper(); gitopstest.Check(k.T, err) }
	for name, c := range map[string]struct {
		step    string
		user    func(*killFixture)
		want    func(*killFixture, error)
		mend    func(*killFixture) // what lets recovery end
		content map[string]string  // of files in the end
	}{
		"changed": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"mod.txt": "user"}) }, collides("mod.txt"),
			func(k *killFixture) { k.Run("checkout", "--", "mod.txt") }, map[string]string{"mod.txt": "1\n", "rm": "1", "file": "1"}},
		"changed, then staged": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"mod.txt": "user"}) }, collides("mod.txt"),
			func(k *killFixture) { k.Run("add", "mod.txt") }, map[string]string{"mod.txt": "user", "rm": "1"}},
		"changed, not yet moved": {stepSwing + ":1", func(k *killFixture) { k.Write(gitopstest.Files{"mod.txt": "user"}) }, fine, nil,
			map[string]string{"mod.txt": "user", "rm": "1"}},
		"made anew": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"rm": "user"}) }, collides("rm"),
			func(k *killFixture) { k.Write(gitopstest.Files{"rm": "1"}) }, map[string]string{"rm": "1", "mod.txt": "1\n"}},
		"deleted": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"mod.txt": gitopstest.Absent}) }, collides("mod.txt"),
			func(k *killFixture) { k.Run("rm", "-q", "--cached", "mod.txt") }, map[string]string{"rm": "1"}},
		"new file changed": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"add/deep/f": "user"}) }, collides("add/deep/f"),
			func(k *killFixture) { k.Write(gitopstest.Files{"add": gitopstest.Absent}) }, map[string]string{"rm": "1"}},
		"file beside a new one": {stepTree, func(k *killFixture) { k.Write(gitopstest.Files{"add/deep/g": "user"}) }, fine, nil, map[string]string{"add/deep/g": "user", "rm": "1"}},
		"changed after the refs": {stepRefs, func(k *killFixture) { k.Write(gitopstest.Files{"mod.txt": "user", "add/deep/f": "user2"}) }, fine, nil,
			map[string]string{"mod.txt": "user", "add/deep/f": "user2", "mode": "1"}},
		"lock removed, committed": {stepTree, func(k *killFixture) {
			gitopstest.Check(k.T, os.Remove(filepath.Join(k.GitDir, "index.lock")))
			k.Run("add", "mode", "mod.txt")
			k.Run("commit", "-q", "-m", "mine")
		}, fine, nil, map[string]string{"mod.txt": "2\r\n", "rm": "1", "file": "1"}},
		"lock removed, staged after the refs": {stepRefs, func(k *killFixture) {
			gitopstest.Check(k.T, os.Remove(filepath.Join(k.GitDir, "index.lock")))
			k.Write(gitopstest.Files{"mod.txt": "user", "other": "user"})
			k.Run("add", "mod.txt", "other")
		}, fine, nil, map[string]string{"mod.txt": "user", "other": "user", "dir": "2"}},
		"branch switched": {stepTree, func(k *killFixture) {
			gitopstest.Check(k.T, os.Remove(filepath.Join(k.GitDir, "index.lock")))
			k.Run("checkout", "-q", "-f", "-b", "other")
		}, fine, nil, map[string]string{"mod.txt": "1\n", "rm": "1", "file": "1", "keep": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKillFixture(t)
			k.mustKill(c.step)
			c.user(k)
			c.want(k, k.recover())
			if c.mend != nil {
				c.mend(k)
				gitopstest.Check(t, k.recover())
			}
			for name, want := range c.content {
				if got, err := os.ReadFile(filepath.Join(k.Top, name)); string(got) != want {
					t.Errorf("%s is %q (%v), want %q", name, got, err, want)
				}
			}
			k.NothingLeft()
			k.Run("fsck", "--no-dangling")
		})
	}
}

func TestRecoveryLeavesTheIndexWhole(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	k.mustKill(stepRefs)
	gitopstest.Check(t, os.Remove(filepath.Join(k.GitDir, "index.lock")))
	k.Write(gitopstest.Files{"mod.txt": "user"})
	k.Run("add", "mod.txt")
	gitopstest.Check(t, k.recover())
	k.wantStatus("A  added\n M keep\nM  mod.txt\n?? untracked")
}

// A killed recovery leaves a lock like that of the landing, and files that were staged before still count.
func TestKilledRecoveryKeepsWhatIsStaged(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	k.mustKill(stepRefs)
	gitopstest.Check(t, os.Remove(filepath.Join(k.GitDir, "index.lock")))
	k.Write(gitopstest.Files{"keep": "staged", "file": gitopstest.Absent})
	k.Write(gitopstest.Files{"file": "1"}) // there is something left to be moved, where it is killed
	k.Run("add", "keep")
	if !k.kill(stepSwing + ":1") {
		t.Fatal("the recovery was not killed")
	}
	gitopstest.Check(t, k.recover())
	k.wantStatus("A  added\nM  keep\n?? untracked")
	k.NothingLeft()
}

func TestRecoveryRespectsLocksOfOthers(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepLocked, stepTree, stepRefs} {
		k := newKillFixture(t)
		k.mustKill(step)
		lock := filepath.Join(k.GitDir, "index.lock")
		gitopstest.Check(t, os.WriteFile(lock, []byte("somebody's"), 0o644))
		err := k.recover()
		if want := step != stepLocked; errors.Is(err, ErrIndexLocked) != want {
			t.Errorf("%s: Recover: %v, want ErrIndexLocked: %v", step, err, want)
		}
		if content, _ := os.ReadFile(lock); string(content) != "somebody's" {
			t.Errorf("%s: the lock holds %q", step, content)
		}
		gitopstest.Check(t, os.Remove(lock))
		gitopstest.Check(t, k.recover())
		if step == stepRefs {
			k.isAfter()
		} else {
			k.isBefore()
		}
	}
}

// Git moves the refs of a transaction one after the other. If the machine fails before the branch has moved, the
// others are moved back.
func TestRecoveryOfRefsMovedBeforeTheBranch(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		k := newKillFixture(t)
		k.mustKill(stepTree)
		k.lockless()
		for _, u := range k.request.First[:n] {
			gitopstest.Check(t, k.UpdateRefs(t.Context(), "", u))
		}
		gitopstest.Check(t, k.recover())
		k.isBefore()
	}
}

// lockless waits until the git of a killed landing has released the refs.
func (k *killFixture) lockless() {
	k.T.Helper()
	j, err := readJournal(k.State)
	gitopstest.Check(k.T, err)
	gitopstest.Check(k.T, release(k.Repository, j.Holder, j.Locks))
}

// If the machine fails, git leaves its locks on the refs. Recovery recognises them, and removes no other locks.
func TestRecoveryRemovesItsOwnRefLocks(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	updates := append([]gitops.RefUpdate{{Ref: "refs/heads/main", Old: k.old, New: k.new}}, k.request.Refs...)
	tx, err := k.PrepareRefs(t.Context(), "test", updates)
	gitopstest.Check(t, err)
	j := journal{Version: 1, Branch: "refs/heads/main", Old: k.old, New: k.new, Refs: k.request.Refs, Scratch: ScratchPrefix + "x",
		Holder: holderOf(tx.Cmd.Process.Pid), Locks: refLocks(k.Repository, updates)}
	gitopstest.Check(t, j.write(k.State))
	if want := 5; len(j.Locks) != want { // HEAD, packed-refs, the branch, promoted, pending
		t.Errorf("%d locks found, want %d: %v", len(j.Locks), want, j.Locks)
	}
	gitopstest.Check(t, tx.Cmd.Process.Kill())
	tx.Abort()
	if _, err := gitopstest.TryCommand(k.Top, nil, "update-ref", "refs/heads/main", string(k.old)); err == nil {
		t.Fatal("the refs are not locked: nothing to be shown here")
	}
	// Another program's lock in the place of our lock.
	head := filepath.Join(k.GitDir, "HEAD.lock")
	gitopstest.Check(t, os.Remove(head))
	gitopstest.Check(t, os.WriteFile(head, []byte("somebody's"), 0o644))
	gitopstest.Check(t, k.recover())
	if content, _ := os.ReadFile(head); string(content) != "somebody's" {
		t.Errorf("HEAD.lock holds %q", content)
	}
	gitopstest.Check(t, os.Remove(head))
	k.isBefore()
}

// While the git process that locks the refs is alive, the position of the branch is not known.
func TestRecoveryWaitsForTheHolder(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	updates := []gitops.RefUpdate{{Ref: "refs/heads/main", Old: k.old, New: k.new}}
	tx, err := k.PrepareRefs(t.Context(), "test", updates)
	gitopstest.Check(t, err)
	j := journal{Version: 1, Branch: "refs/heads/main", Old: k.old, New: k.new, Scratch: ScratchPrefix + "x",
		Holder: holderOf(tx.Cmd.Process.Pid), Locks: refLocks(k.Repository, updates)}
	gitopstest.Check(t, j.write(k.State))
	recovered := make(chan error)
	go func() { recovered <- k.recover() }()
	time.Sleep(50 * time.Millisecond)
	select {
	case err := <-recovered:
		t.Fatal("recovery did not wait:", err)
	default:
	}
	gitopstest.Check(t, tx.Commit())
	gitopstest.Check(t, <-recovered)
	if tip := k.At("refs/heads/main"); tip != k.new {
		t.Errorf("main is at %s, want %s", tip, k.new)
	}
	if got := k.Run("status", "--porcelain"); strings.Contains(got, "mod.txt") {
		t.Errorf("git status says\n%s", got)
	}
}

func TestRecoverReadsNoForeignJournal(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", `{"version":2}`, `{"version":1,"scratch":"../../outer"}`, `{"version":1,"scratch":"landing-/.."}`} {
		w := newWorld(t)
		w.CommitAll(gitopstest.Files{"a": "1"})
		gitopstest.Check(t, os.WriteFile(gitops.JournalPath(w.State), []byte(content), 0o600))
		before := w.picture()
		if err := Recover(t.Context(), w.Repository, w.State); err == nil {
			t.Errorf("journal %q: no error", content)
		}
		w.picture().equals(t, before)
	}
}

const notesRef = "refs/notes/airlock"
