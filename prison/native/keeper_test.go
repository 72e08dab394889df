//go:build linux

package native_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/sys/unix"
)

// startElsewhere starts a prison from another process, and returns when that process has ended.
func startElsewhere(t *testing.T, s prison.Spec) { startBy(t, s) }

// startAfter starts a prison from another process, in its own mount namespace, after a script has run there. It returns the prison's
// weaknesses.
func startAfter(t *testing.T, s prison.Spec, script string) (weaker string) {
	t.Helper()
	return startBy(t, s, "unshare", "-m", "sh", "-euc", script+"\nexec \"$@\"", "sh")
}

func startBy(t *testing.T, s prison.Spec, prefix ...string) (weaker string) {
	t.Helper()
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	argv := append(prefix, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), starterEnv+"="+string(encoded), "SECRET_OF_THE_CALLER=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("start: %v: %s", err, out)
	}
	return string(out)
}

func prepared(t testing.TB) (prison.Backend, prison.Spec) {
	t.Helper()
	b := needNative(t)
	s := prisontest.NewSpec(t, b, options(t))
	if err := b.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return b, s
}

func start(t testing.TB, b prison.Backend, s prison.Spec) prison.Isolation {
	t.Helper()
	i, err := b.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func attach(t testing.TB, b prison.Backend, s prison.Spec) prison.Prison {
	t.Helper()
	p, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func output(t *testing.T, b prison.Backend, s prison.Spec, script string) string {
	t.Helper()
	p := attach(t, b, s)
	var out bytes.Buffer
	if _, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// runsOn runs a command in a prison that runs.
func runsOn(t *testing.T, b prison.Backend, s prison.Spec) {
	t.Helper()
	if got := output(t, b, s, "echo on"); got != "on" {
		t.Errorf("output %q", got)
	}
}

// keptState is the part of the keeper's state file that these tests read.
type keptState struct {
	Keeper, Init, Recorder struct{ PID int }
	Cgroups                []string
}

func stateOf(t testing.TB, s prison.Spec) (k keptState) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &k); err != nil {
		t.Fatal(err)
	}
	return k
}

func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// expectNothing checks that a run has left no process and no file. A keeper that was killed, or that ends by itself, releases its lock a
// moment before it has ended.
func expectNothing(t *testing.T, s prison.Spec, k keptState) {
	t.Helper()
	if running(k.Init.PID) {
		t.Errorf("process %d runs", k.Init.PID)
	}
	expectEnd(t, k.Keeper.PID)
	for _, path := range append(k.Cgroups, filepath.Join(s.Dir, "control"), filepath.Join(s.Dir, "state.json")) {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), s.Workspace) || strings.Contains(string(mounts), s.Dir) {
		t.Error("something is mounted")
	}
}

func TestOutlivesStarter(t *testing.T) {
	b, s := prepared(t)
	startElsewhere(t, s)
	if got := output(t, b, s, "id -u"); got != strconv.Itoa(s.UID) {
		t.Errorf("id: %q", got)
	}
	k := stateOf(t, s)
	for _, file := range []string{"environ", "cmdline"} {
		content, err := os.ReadFile("/proc/" + strconv.Itoa(k.Keeper.PID) + "/" + file)
		if err != nil || bytes.Contains(content, []byte("SECRET")) || bytes.Contains(content, []byte(s.Dir)) {
			t.Errorf("the keeper's %s: %q, %v", file, content, err)
		}
	}
	session, err := unix.Getsid(k.Keeper.PID)
	if err != nil || session != k.Keeper.PID {
		t.Errorf("the keeper's session: %d, %v", session, err)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	expectNothing(t, s, k)
}

func TestKeeperKilled(t *testing.T) {
	b, s := prepared(t)
	startElsewhere(t, s)
	p := attach(t, b, s)
	if err := p.Launch(t.Context(), prison.Process{Argv: []string{"sleep", "2222"}}); err != nil {
		t.Fatal(err)
	}
	k := stateOf(t, s)
	unix.Kill(k.Keeper.PID, unix.SIGKILL)
	begun := time.Now()
	for running(k.Init.PID) {
		if time.Since(begun) > patience {
			t.Fatal("init outlives its keeper")
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("attach: %v", err)
	}
	if l, err := b.Launched(t.Context(), s); err != nil || l == nil || !l.Exited || l.Status != 137 {
		t.Errorf("launched: %+v, %v", l, err)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatalf("stop: %v", err)
	}
	expectNothing(t, s, k)
}

// TestStartAfterKill starts a killed prison again without a Stop in between.
func TestStartAfterKill(t *testing.T) {
	b, s := prepared(t)
	startElsewhere(t, s)
	k := stateOf(t, s)
	unix.Kill(k.Keeper.PID, unix.SIGKILL)
	for running(k.Keeper.PID) {
		time.Sleep(time.Millisecond)
	}
	if _, err := b.Start(t.Context(), s); err != nil {
		t.Fatalf("start: %v", err)
	}
	runsOn(t, b, s)
}

func TestInitKilled(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	k := stateOf(t, s)
	if err := unix.Kill(k.Init.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); running(k.Keeper.PID); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("the keeper outlives its init")
		}
	}
	expectNothing(t, s, k)
}

// TestSignalsFromInside sends init signals that would end other programs.
func TestSignalsFromInside(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	output(t, b, s, "for n in HUP INT QUIT ABRT TERM USR1 KILL STOP TSTP PIPE ALRM ILL TRAP BUS FPE SEGV STKFLT SYS; do kill -$n 1; done; kill -KILL -1; true")
	runsOn(t, b, s)
	p := attach(t, b, s)
	// A program that only checks whether a signal comes from kill(2) takes a queued signal for one of the kernel.
	var queued []calls.Call
	for n := range uintptr(64) {
		info := make([]byte, 128) // siginfo_t
		binary.NativeEndian.PutUint32(info, uint32(n+1))
		binary.NativeEndian.PutUint32(info[8:], 1<<32-1) // SI_QUEUE
		queued = append(queued, calls.Call{Name: "rt_sigqueueinfo", Number: unix.SYS_RT_SIGQUEUEINFO, Args: [6]uintptr{1, n + 1, calls.Pointer}, Data: info})
	}
	if results, err := calls.Make(t.Context(), p, queued); err != nil {
		t.Fatal(err)
	} else if results[unix.SIGSEGV-1] != -int64(unix.EPERM) {
		t.Errorf("the agent may send init signals: %d", results)
	}
	runsOn(t, b, s)
}

// TestDeepDir uses a state folder whose path is longer than a socket address.
func TestDeepDir(t *testing.T) {
	b := needNative(t)
	o := options(t)
	o.Dir = filepath.Join(t.TempDir(), strings.Repeat("deep/", 60), "no text \xff")
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := prisontest.NewSpec(t, b, o)
	if err := b.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	start(t, b, s)
	runsOn(t, b, s)
}

// TestOpenEndsWithCaller kills a process that has opened a prison.
func TestOpenEndsWithCaller(t *testing.T) {
	_, s := prepared(t)
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), openerEnv+"="+string(encoded))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if left := gidProcesses(s.GID); left == 0 {
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("the open prison outlives its caller: %d processes", gidProcesses(s.GID))
		}
	}
}

func openAndWait(encoded string) int {
	var s prison.Spec
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		panic(err)
	}
	p, err := native.New().Open(context.Background(), s)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("x")
	p.Exec(context.Background(), prison.Process{Argv: []string{"sleep", "1111"}})
	return 0
}

// gidProcesses counts the processes of a prison by the gid. Init has the agent's gid, but another uid.
func gidProcesses(gid int) (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range paths {
		content, _ := os.ReadFile(path)
		// A process that ends releases its memory first, and then the lock. So a process without memory does not count.
		if strings.Contains(string(content), "\nGid:\t"+strconv.Itoa(gid)+"\t") && strings.Contains(string(content), "\nVmSize:") {
			n++
		}
	}
	return n
}

// TestCopied starts a prison in a copy of a running prison's folder. Every attempt must be refused, and the state that names the other
// prison must stay.
func TestCopied(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	original, dir := s, t.TempDir()
	if out, err := exec.Command("find", s.Dir, "-maxdepth", "1", "!", "-type", "d", "-exec", "cp", "-a", "{}", dir, ";").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.Dir = dir
	for range 2 {
		if _, err := b.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), prison.ErrElsewhere.Error()) {
			t.Errorf("started: %v", err)
		}
		for _, name := range []string{"control", "state.json"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(b.Stop(t.Context(), original), b.Stop(t.Context(), s), b.Wipe(t.Context(), s)); err != nil {
		t.Error(err)
	}
}

// TestZombie checks a process that has ended, but whose parent has not waited for it.
func TestZombie(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if !native.LooksAlive(cmd.Process.Pid) {
		t.Error("a process that runs is taken for one that has ended")
	}
	in.Close()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if native.LooksAlive(cmd.Process.Pid) {
		t.Error("a zombie is taken for a process that runs")
	}
}

// TestStartBesideReadOnlyPrison starts a prison whose workspace a read-only prison uses already.
func TestStartBesideReadOnlyPrison(t *testing.T) {
	b, s := prepared(t)
	looking := s
	looking.ReadOnly = true
	look, err := b.Open(t.Context(), looking)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	changes, err := look.Watch(t.Context(), []string{prison.Workspace + "/refs"})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if _, err := b.Start(t.Context(), s); err != nil {
			t.Fatalf("start %d: %v", round, err)
		}
		output(t, b, s, "mkdir -p refs; echo "+strconv.Itoa(round)+" > refs/x")
		select {
		case <-changes:
		case <-time.After(patience):
			t.Errorf("round %d: no change seen", round)
		}
		var out bytes.Buffer
		if _, err := look.Exec(t.Context(), prison.Process{Argv: []string{"cat", "refs/x"}, Stdout: &out}); err != nil || out.String() != strconv.Itoa(round)+"\n" {
			t.Errorf("round %d: %v, %q", round, err, out.String())
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWipeLeavesNothing checks that Wipe empties the state folder after every kind of use.
func TestWipeLeavesNothing(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	p := attach(t, b, s)
	if err := p.Launch(t.Context(), prison.Process{Argv: []string{"echo", "shown"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(b.Stop(t.Context(), s), b.Wipe(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) > 0 {
			t.Errorf("left in the state folder: %v, %v", entries, err)
		}
	}
}

// TestLockRemoved starts, stops and wipes at the same time. A process that waits for the lock must not take a lock file that has been
// removed.
func TestLockRemoved(t *testing.T) {
	b, s := prepared(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if b.Prepare(t.Context(), s) == nil {
					b.Start(t.Context(), s)
				}
				b.Stop(t.Context(), s)
				b.Wipe(t.Context(), s)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(b.Stop(t.Context(), s), b.Wipe(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	if n := gidProcesses(s.GID); n > 0 {
		t.Errorf("%d processes left", n)
	}
}
