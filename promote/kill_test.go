package promote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// daemonRequest is the variable with which a kill test makes its helper process the daemon of an airlock, or lets it undo or
// redo a landing, until it is killed.
type daemonRequest struct{ Top, Inner, ID, Do string }

const daemonVariable = "AIRLOCK_TEST_DAEMON"

// daemonHelper is the main function of the processes that are killed.
func daemonHelper(text string) int {
	var request daemonRequest
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		panic(err)
	}
	repo, err := gitops.Open(context.Background(), request.Top)
	if err == nil {
		var r airlock.Record
		r, err = airlock.Open(repo).Load(request.ID)
		if engine := newEngine(repo, r, request.Inner); request.Do == "undo" {
			_, err = undo.Undo(context.Background(), engine, 0)
		} else if request.Do == "redo" {
			_, err = undo.Redo(context.Background(), engine)
		} else if request.Do == "approve" {
			_, err = verdict.Record(context.Background(), engine, verdict.Request{Word: review.Approve, All: true, Cycle: true})
			killpoint.Reach("verdict") // before the cycle
		} else if request.Do == "cycle" {
			_, err = engine.Drain(context.Background(), promote.Options{})
		} else if err == nil {
			err = airlock.ErrBusy
			for errors.Is(err, airlock.ErrBusy) { // a process between fork and exec still holds the previous daemon's lock
				err = daemon.Run(context.Background(), daemon.Config{Engine: newEngine(repo, r, request.Inner), Log: log.New(os.Stderr, "", 0)})
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// killSteps are the steps of a landing at which the program can be made to kill itself (gitops/land).
var killSteps = []string{"prepared", "locked", "journal", "swing:1", "swing:2", "swing:5", "tree", "refs", "index"}

// TestDaemonKilledWhileAllWork kills a daemon again and again, at each step of a landing and at any moment. Meanwhile
// the agent commits, and the user commits, stages and switches branches. In the end each inner commit has landed
// exactly once, the user has lost nothing, and no file is left over. AIRLOCK_TEST_KILLS is the number of kills, to which kills
// are added until each step was reached.
func TestDaemonKilledWhileAllWork(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 8 // each step is reached nevertheless
	}
	if text := os.Getenv("AIRLOCK_TEST_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		check(t, err)
	}
	seed := seeds(t, 1)[0]
	t.Logf("AIRLOCK_TEST_SEED=%d", seed)
	base := tree{"a": plain("a\n"), "lib/a": plain("a\n")}
	w := newWorld(t, "sha1", base)
	a := newAgent(w, base, seed)
	u := &worker{world: w, r: rand.New(rand.NewPCG(seed, 2)), files: tree{}}
	w.git("branch", "elsewhere")
	stop := make(chan struct{})
	var all sync.WaitGroup
	paces := make(chan struct{}, 4) // the agent's steps between two kills: more would only pile up
	for _, work := range []func(){u.work, func() {
		select {
		case <-paces:
			a.step()
			a.publish()
		case <-time.After(20 * time.Millisecond):
		}
	}} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					work()
				}
			}
		})
	}
	count := w.killDaemons(rand.New(rand.NewPCG(seed, 3)), kills, paces)
	end := w.daemon() // the last one is not killed
	close(stop)
	all.Wait()
	u.comeBack()
	w.await("everything to land", func() bool {
		return noteValue(w.notes()[w.ref(w.record.Ref("promoted"))], "Inner-Commit") == string(a.main.id)
	})
	end()
	// A git process can outlive the daemon that started it, such as a repack of the quarantine. The next cycle removes
	// the temporary files of those that did not finish.
	w.await("the git processes of killed daemons to end", func() bool { return !w.usedByGit() })
	w.cycle()
	u.nothingLost()
	w.landedOnce(a)
	w.nothingLeft()
	t.Logf("%d commits of the agent's, %d of the user's; killed at: %v", len(a.reached()), len(u.commits), count)
}

// killDaemons runs one daemon after the other, kills each, and lets the agent continue meanwhile. It returns the
// steps of the kills, and how often each was reached.
func (w *world) killDaemons(r *rand.Rand, times int, paces chan<- struct{}) map[string]int {
	w.t.Helper()
	request, err := json.Marshal(daemonRequest{w.Top, w.inner, w.record.ID, ""})
	check(w.t, err)
	count := map[string]int{}
	for i := range times {
		step, within := "", time.Duration(r.IntN(250))*time.Millisecond
		if i%2 == 0 {
			step, within = killSteps[i/2%len(killSteps)], time.Second // there may be nothing to land
		}
		go pace(paces, r.IntN(cap(paces)+1), within)
		count[w.killDaemon(string(request), step, within, r.IntN(2) == 0)]++
	}
	for _, step := range killSteps {
		for try := 0; count[step] == 0 && try < 20; try++ {
			go pace(paces, cap(paces), time.Second)
			count[w.killDaemon(string(request), step, time.Minute, false)]++ // a daemon may first have to check all that the killed ones left
		}
		if count[step] == 0 {
			w.t.Errorf("no landing got to the step %s", step)
		}
	}
	return count
}

// pace lets the agent make some steps within a time.
func pace(paces chan<- struct{}, steps int, within time.Duration) {
	for range steps {
		paces <- struct{}{}
		time.Sleep(within / time.Duration(steps))
	}
}

// killDaemon runs a daemon that is killed at a step or after some time, alone or with all its git processes. It
// returns the step.
func (w *world) killDaemon(request, step string, within time.Duration, withGit bool) string {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonVariable+"="+request, "AIRLOCK_TEST_KILL="+step)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	cmd.Stderr = &said
	check(w.t, cmd.Start())
	victim := cmd.Process.Pid
	if withGit {
		victim = -victim
	}
	timer := time.AfterFunc(within, func() { _ = syscall.Kill(victim, syscall.SIGKILL) })
	_ = cmd.Wait()
	if !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		w.t.Fatalf("the daemon ended by itself: %s", &said)
	}
	if timer.Stop() {
		return step
	}
	return "any moment"
}

// usedByGit reports whether a git process works in the repository or in the quarantine. It finds none on systems
// without proc(5).
func (w *world) usedByGit() bool {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	return slices.ContainsFunc(processes, func(p string) bool {
		name, _ := os.ReadFile(filepath.Join(p, "comm")) // empty for a process that has ended
		folder, _ := os.Readlink(filepath.Join(p, "cwd"))
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		return strings.HasPrefix(string(name), "git") && strings.Contains(folder+string(environment), w.Top)
	})
}

// worker is a user who works in the outer repository, at paths that the agent does not use.
type worker struct {
	*world
	r       *rand.Rand
	files   tree // written once, whatever happened to them
	commits []string
	staged  []string
	missed  int // commands that found a lock
}

const ownFolder = "the user"

// work makes one random step.
func (u *worker) work() {
	name := fmt.Sprintf("%s/%d", ownFolder, len(u.files))
	switch n := u.r.IntN(10); {
	case n < 3:
		u.write(name)
		u.must("add", "-f", name)
		u.staged = append(u.staged, name)
	case n < 7 && len(u.staged) > 0:
		u.must("commit", "-q", "-m", "mine")
		u.commits, u.staged = append(u.commits, u.must("rev-parse", "HEAD")), nil
	case n < 8:
		u.write(name) // untracked
	case n < 9:
		u.must("checkout", "-q", "elsewhere")
		time.Sleep(time.Duration(u.r.IntN(30)) * time.Millisecond)
		u.comeBack()
	}
	time.Sleep(time.Duration(u.r.IntN(400)) * time.Millisecond)
}

func (u *worker) comeBack() { u.must("checkout", "-q", u.record.BranchName().Raw()) }

func (u *worker) write(name string) {
	u.files[name] = plain(name + "\n")
	u.files[name].write(u.t, filepath.Join(u.Top, name))
}

// must runs git again whenever git reports a lock or that HEAD has just moved, as a user would.
func (u *worker) must(args ...string) string {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		out, err := tryGit(u.Top, "", args...)
		if err == nil {
			return strings.TrimSpace(out)
		}
		u.missed++
		if text := err.Error(); !strings.Contains(text, ".lock") && !strings.Contains(text, "cannot lock ref") || time.Now().After(end) {
			u.t.Errorf("the user cannot work: %v", err)
			return ""
		}
	}
}

// nothingLost checks that everything the user made still exists: commits on a branch, staged content in the index,
// and the content of files.
func (u *worker) nothingLost() {
	u.t.Helper()
	reached := strings.Fields(u.git("rev-list", u.record.Branch, "elsewhere"))
	for _, c := range u.commits {
		if !slices.Contains(reached, c) {
			u.t.Errorf("the user's commit %s is on no branch", c)
		}
	}
	var staged []string
	for line := range strings.Lines(u.git("status", "--porcelain", "--no-renames") + "\n") {
		name := strings.Trim(strings.TrimSpace(line[2:]), `"`)
		switch state := line[:2]; {
		case state == "A ":
			staged = append(staged, name)
		case state != "??":
			u.t.Errorf("git status says %q", line)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(staged)), slices.Sorted(slices.Values(u.staged))) {
		u.t.Errorf("staged is %q, want %q", staged, u.staged)
	}
	there := readTree(u.t, filepath.Join(u.Top, ownFolder))
	for name, f := range u.files {
		if got := there[strings.TrimPrefix(name, ownFolder+"/")]; got != f {
			u.t.Errorf("%s is %q", name, got)
		}
	}
}

// reached lists the commits of the agent's main that must land.
func (a *agent) reached() []*commit {
	return reached(a.main, func(c *commit) bool { return c == a.root })
}

// landedOnce checks that each of the agent's commits has landed once, with its files and those that the user had
// committed by then, and that all other commits of the branch are the user's.
func (w *world) landedOnce(a *agent) {
	w.t.Helper()
	waiting := map[string]*commit{}
	for _, c := range a.reached() {
		waiting[string(c.id)] = c
	}
	notes := w.notes()
	for line := range strings.Lines(w.git("rev-list", "--topo-order", "--reverse", "--parents", string(w.record.Base)+".."+w.record.Branch) + "\n") {
		fields := strings.Fields(line)
		note := notes[gitops.OID(fields[0])]
		if note == "" {
			if mine := w.git("show", "-s", "--format=%s", fields[0]); mine != "mine" {
				w.t.Errorf("%s, %q, has no note", fields[0], mine)
			}
			continue
		}
		inner := noteValue(note, "Inner-Commit")
		c := waiting[inner]
		if c == nil {
			w.t.Errorf("%s landed as %s and should not have, or has twice", inner, fields[0])
			continue
		}
		delete(waiting, inner)
		own := tree{}
		if len(fields) > 1 {
			own = w.ownFiles(fields[1])
		}
		if got, want := w.git("rev-parse", fields[0]+"^{tree}"), w.wantTree(c, own); got != want {
			w.t.Errorf("%s landed as %s with the tree %s, want %s", inner, fields[0], got, want)
		}
	}
	for inner := range waiting {
		w.t.Errorf("%s has not landed", inner)
	}
}

func (w *world) wantTree(c *commit, own tree) string {
	return string(objects{format: w.Format}.tree(w.t, c.files.with(own)))
}

// ownFiles returns the user's files in a commit.
func (w *world) ownFiles(commit string) tree {
	own := tree{}
	for name := range strings.Lines(w.git("ls-tree", "-r", "--name-only", commit, ownFolder+"/") + "\n") {
		if name = strings.TrimSuffix(name, "\n"); name != "" {
			own[name] = plain(name + "\n")
		}
	}
	return own
}
