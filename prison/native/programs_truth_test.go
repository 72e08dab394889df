//go:build linux && amd64

package native_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

// execerEnv makes the test binary, inside, execute the given number of programs, and print each of them.
const execerEnv = "EXECER"

func init() { rolesHere[execerEnv] = beExecer }

// stepEnv makes the test binary, inside, execute one program in its own process.
const stepEnv = "EXECER_STEP"

func init() { rolesHere[stepEnv] = beStep }

// longRuns is the variable with the number of programs for a long test.
const longRuns = "AIRLOCK_TEST_EXECS"

// truth describes a call that a process inside has made.
type truth struct {
	PID  int
	Path string
	Argv []string
	Exit int  // exit status, or failed, or between
	Any  bool // the kernel may have read either of the raced arguments
}

const (
	failed  = -1 // the call failed
	between = -2 // the program is neither the first nor the last of its process
)

// exiting returns a program that calls a system call to end with a status.
func exiting(call, status byte) []byte {
	return elf64([]byte{0xbf, status, 0, 0, 0, 0xb8, call, 0, 0, 0, 0x0f, 0x05})
}

// execFiles are the programs that the test executes.
func execFiles() map[string][]byte {
	return map[string][]byte{
		"p0": exiting(231, 0), "p7": exiting(231, 7), "raw": exiting(60, 5), "ra": exiting(231, 0), "rb": exiting(231, 1),
		"p32": elf32([]byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80}), "text": []byte("no program\n"),
		"s1": []byte("#!./p7 one argument\n"), "s2": []byte("#!./s1\n"), "s3": []byte("#!/usr/bin/env -S sh -e\nexit 3\n"), "s4": []byte("#!./absent\n"),
		"odd\n\xff name": exiting(231, 9),
	}
}

// beExecer executes programs of all kinds, and prints a truth for each.
func beExecer(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		return 1
	}
	for name, content := range execFiles() {
		if err := os.WriteFile(name, content, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				found := executeOne(i)
				mu.Lock()
				for _, t := range found {
					out.Encode(t) // if this fails, the test misses the line
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return 0
}

// executeOne executes the nth program. Every hundredth one is executed by a process of its own, which is slow.
func executeOne(i int) []truth {
	if i%100 == 99 {
		steps := []string{"at", "memfd", "race", "racearg", "thread", "chain"}
		return inStep(steps[i/100%len(steps)], i)
	}
	long := strings.Repeat("x", 40<<10)
	kinds := []truth{
		{Path: "./p0", Argv: []string{"./p0", strconv.Itoa(i)}},
		{Path: "/workspace/p7", Argv: []string{"p7", "", "\xff\n"}, Exit: 7},
		{Path: "./raw", Argv: []string{"raw", strconv.Itoa(i)}, Exit: 5},
		{Path: "./s1", Argv: []string{"s1", "a b", "c"}, Exit: 7},
		{Path: "./s2", Argv: []string{"s2", strconv.Itoa(i)}, Exit: 7},
		{Path: "./s4", Argv: []string{"s4"}, Exit: failed},
		{Path: "./absent", Argv: []string{"absent", strconv.Itoa(i)}, Exit: failed},
		{Path: "./text", Argv: []string{"text"}, Exit: failed},
		{Path: ".", Argv: []string{"."}, Exit: failed},
		{Path: "./odd\n\xff name", Argv: []string{"odd"}, Exit: 9},
		{Path: "./p32", Argv: []string{"p32"}, Exit: 128 + int(unix.SIGSYS)},
		{Path: "./p7", Argv: []string{"p7", long}, Exit: 7},
	}
	if i%12 == 11 && i%120 != 11 {
		i-- // a long one is slow, too
	}
	t := kinds[i%12]
	attr := &syscall.ProcAttr{Files: []uintptr{0, 2, 2}}
	pid, err := syscall.ForkExec(t.Path, t.Argv, attr)
	if err != nil {
		if errors.Is(err, unix.ENOEXEC) && t.Path == "./p32" {
			t.Exit = failed // the kernel has only calls of 64 bits
		}
		return []truth{t} // the call has replaced its process
	}
	t.PID = pid
	t.Exit = statusOf(pid)
	return []truth{t}
}

func statusOf(pid int) int {
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// stepFD is the descriptor of the program for execveat(2).
const stepFD = 50

// inStep executes a program in a process that was started for that.
func inStep(step string, i int) []truth {
	first := truth{Path: "./try", Argv: []string{"./try", step, strconv.Itoa(i)}}
	cmd := exec.Command(first.Path, first.Argv[1:]...)
	cmd.Env = []string{stepEnv + "=" + step}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil
	}
	first.PID = cmd.Process.Pid
	cmd.Wait() // the status is read below
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	first.Exit = ws.ExitStatus()
	second := truth{PID: first.PID, Exit: first.Exit, Path: "./p7", Argv: []string{"p7", step}}
	switch step {
	case "at":
		second.Path = "/dev/fd/" + strconv.Itoa(stepFD) + "/p7"
	case "memfd":
		second.Path = "/dev/fd/" + strconv.Itoa(stepFD)
	case "race":
		second.Path, second.Any = "./r", true
	case "racearg":
		second.Path, second.Argv, second.Any = "/bin/sh", []string{"sh", "-c", `exit "$1"`, "sh", "?"}, true
	case "chain":
		middle := second
		middle.Path, middle.Argv, middle.Exit = "/usr/bin/env", []string{"env", "./p7", step}, between
		second.Argv = []string{"./p7", step}
		return []truth{first, middle, second}
	}
	return []truth{first, second}
}

// beStep executes one program in this process.
func beStep(step string) int {
	execveat := func(fd int, path string, argv []string, flags int) {
		p, _ := unix.BytePtrFromString(path)
		a, _ := syscall.SlicePtrFromStrings(argv)
		e, _ := syscall.SlicePtrFromStrings(nil)
		_, _, err := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&e[0])), uintptr(flags), 0)
		fmt.Fprintln(os.Stderr, step, err)
	}
	switch step {
	case "listen":
		allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &allow}
		_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
		return int(e)
	case "at":
		fd, _ := unix.Open("/workspace", unix.O_PATH|unix.O_DIRECTORY, 0)
		unix.Dup2(fd, stepFD) // if this fails, the next call fails
		execveat(stepFD, "p7", []string{"p7", step}, 0)
	case "memfd":
		fd, _ := unix.MemfdCreate("hidden", 0)
		unix.Write(fd, exiting(231, 7)) // if this fails, the next call fails
		unix.Dup2(fd, stepFD)           // if this fails, the next call fails
		execveat(stepFD, "", []string{"p7", step}, unix.AT_EMPTY_PATH)
	case "race":
		path := []byte("./ra\x00\x00\x00\x00")
		race(path, "./rb", path, [][]byte{[]byte("p7\x00"), []byte("race\x00")})
	case "racearg":
		last := []byte("3\x00\x00\x00\x00\x00\x00\x00")
		race(last, "4\x00\x00\x00", []byte("/bin/sh\x00"), [][]byte{[]byte("sh\x00"), []byte("-c\x00"), []byte("exit \"$1\"\x00"), []byte("sh\x00"), last})
	case "thread":
		runtime.LockOSThread()
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			done <- syscall.Exec("./p7", []string{"p7", step}, nil)
		}()
		fmt.Fprintln(os.Stderr, step, <-done)
	case "chain":
		fmt.Fprintln(os.Stderr, step, syscall.Exec("/usr/bin/env", []string{"env", "./p7", step}, nil))
	}
	return 99
}

// race executes a program while another thread changes the first four bytes of one of its arguments.
func race(changed []byte, to string, path []byte, argv [][]byte) {
	ready := make(chan bool)
	at := (*uint32)(unsafe.Pointer(&changed[0]))
	one, other := *at, binary.NativeEndian.Uint32([]byte(to))
	go func() {
		runtime.LockOSThread()
		close(ready)
		for {
			for range 50 {
				atomic.StoreUint32(at, other)
			}
			for range 50 {
				atomic.StoreUint32(at, one)
			}
		}
	}()
	<-ready
	time.Sleep(time.Millisecond)
	pointers := make([]*byte, len(argv)+1)
	for i := range argv {
		pointers[i] = &argv[i][0]
	}
	none := []*byte{nil}
	_, _, err := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&pointers[0])), uintptr(unsafe.Pointer(&none[0])))
	fmt.Fprintln(os.Stderr, "race", err)
	runtime.KeepAlive(argv)
}

// TestProgramsAreRecorded compares the record of a prison with the programs that were executed in the prison.
func TestProgramsAreRecorded(t *testing.T) {
	_, s, p := recorded(t)
	bringSelf(t, p)
	count := 600
	if n, err := strconv.Atoi(os.Getenv(longRuns)); err == nil {
		count = n
	}
	total := tally{Disputed: map[string]int{}}
	started := lastNumber(s)
	for deadline := time.Now().Add(patience); started < 3 && time.Now().Before(deadline); started = lastNumber(s) {
		time.Sleep(10 * time.Millisecond) // for the records of the shell that has copied the binary, and of cat and chmod
	}
	const round = 20000
	for done := 0; done < count; done += round {
		last := lastNumber(s)
		var out bytes.Buffer
		status, err := p.Exec(t.Context(), prison.Process{
			Argv: []string{"./try"}, Env: []string{execerEnv + "=" + strconv.Itoa(min(round, count-done))}, Stdout: &out, Stderr: os.Stderr,
		})
		if err != nil || status != 0 {
			t.Fatal(status, err)
		}
		compareTruth(t, s, last, out.Bytes(), &total)
	}
	t.Logf("%+v", total)
}

// tally counts the comparisons.
type tally struct {
	Calls, Raced int
	Disputed     map[string]int
}

func lastNumber(s prison.Spec) uint64 {
	all, err := execs.Read(s.Dir)
	if err != nil || len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Seq
}

// compareTruth compares the printed truths with the records after the number last.
func compareTruth(t *testing.T, s prison.Spec, last uint64, printed []byte, total *tally) {
	t.Helper()
	var want []truth
	for decoder := json.NewDecoder(bytes.NewReader(printed)); decoder.More(); {
		var w truth
		if err := decoder.Decode(&w); err != nil {
			t.Fatal(err)
		}
		want = append(want, w)
	}
	var got []execs.Record
	deadline := time.Now().Add(patience)
	for { // the last records are written a moment later
		all, err := execs.Read(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got = slices.DeleteFunc(all, func(r execs.Record) bool { return r.Seq <= last || r.PPID == 1 })
		if len(got) >= len(want) && !slices.ContainsFunc(got, func(r execs.Record) bool { return r.Ran() && r.Exit == nil && r.MS == nil }) || time.Now().After(deadline) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	total.Calls += len(want)
	byKey := map[string][]execs.Record{}
	for _, r := range got {
		pid := r.PID
		if r.Exe == nil && !r.Disputed {
			pid = 0
		}
		byKey[key(pid, r.Path, r.Argv)] = append(byKey[key(pid, r.Path, r.Argv)], r)
	}
	for _, w := range want {
		r, ok := takeTruth(byKey, w)
		if !ok {
			t.Errorf("not recorded: %+v", brief(w))
			continue
		}
		if r.Disputed {
			total.Disputed[r.Path]++
		}
		if w.Any {
			total.Raced++
		}
		checkRecord(t, w, r)
	}
	for _, left := range byKey {
		for _, r := range left {
			t.Errorf("recorded, but did not happen: %+v", r)
		}
	}
}

// key identifies a call. Bytes that are not text are replaced, as JSON does.
func key(pid int, path string, argv []string) string {
	whole := strings.ToValidUTF8(path+"\x00"+strings.Join(argv, "\x00"), "\ufffd")
	return strconv.Itoa(pid) + " " + whole[:min(len(whole), 2000)]
}

// takeTruth finds the record of a call.
func takeTruth(byKey map[string][]execs.Record, w truth) (r execs.Record, ok bool) {
	var keys []string
	switch {
	case w.Any && w.Path == "./r":
		keys = []string{key(w.PID, "./ra", w.Argv), key(w.PID, "./rb", w.Argv)}
	case w.Any:
		argv := slices.Clone(w.Argv)
		for _, last := range []string{"3", "4"} {
			argv[len(argv)-1] = last
			keys = append(keys, key(w.PID, w.Path, argv))
		}
	case w.Exit == failed:
		keys = []string{key(0, w.Path, w.Argv)}
	default:
		keys = []string{key(w.PID, w.Path, w.Argv)}
	}
	for _, k := range keys {
		if list := byKey[k]; len(list) > 0 {
			byKey[k] = list[1:]
			return list[0], true
		}
	}
	return r, false
}

func brief(w truth) truth {
	for i := range w.Argv {
		w.Argv[i] = w.Argv[i][:min(len(w.Argv[i]), 40)]
	}
	return w
}

// checkRecord checks that a record contains nothing that did not happen.
func checkRecord(t *testing.T, w truth, r execs.Record) {
	t.Helper()
	wrong := ""
	switch {
	case w.Exit == failed && (r.Exe != nil || r.Exit != nil):
		wrong = "it did not run"
	case w.Exit >= 0 && (r.Exit == nil || *r.Exit != w.Exit):
		wrong = "exit status"
	case w.Any && !r.Disputed && w.Path == "./r" && r.Path != map[int]string{0: "./ra", 1: "./rb"}[w.Exit]:
		wrong = "another program ran"
	case w.Any && !r.Disputed && w.Path != "./r" && r.Argv[len(r.Argv)-1] != strconv.Itoa(w.Exit):
		wrong = "it ran with another argument"
	case r.Cut != (len(strings.Join(w.Argv, "")) > 32<<10):
		wrong = "cut"
	case !r.Disputed && w.Exit >= 0 && !w.Any && r.Exe == nil:
		wrong = "no file"
	}
	if wrong != "" {
		exit := -1
		if r.Exit != nil {
			exit = *r.Exit
		}
		t.Errorf("%s: %+v, exit %d, recorded as %+v", wrong, brief(w), exit, r)
	}
}

// TestListenerInside installs a listener inside. The kernel allows only one for each process.
func TestListenerInside(t *testing.T) {
	for record, want := range map[bool]int{false: 0, true: int(unix.EBUSY)} {
		b, s := prepared(t)
		s.Record = record
		p := startRecorded(t, b, s)
		bringSelf(t, p)
		status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"./try"}, Env: []string{stepEnv + "=listen"}})
		if err != nil || status != want {
			t.Errorf("recorded %v: %d, %v; want %d", record, status, err, want)
		}
	}
}
