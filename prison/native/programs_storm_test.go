//go:build linux && amd64

package native_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

// stormEnv makes the test binary, inside, fail to execute a program with long arguments in each of many threads. Its value is how the threads
// end, and their number.
const stormEnv = "STORM"

func init() { rolesHere[stormEnv] = beStorm }

func beStorm(value string) int {
	end, count, _ := strings.Cut(value, " ")
	threads, _ := strconv.Atoi(count)
	path, _ := unix.BytePtrFromString("/absent")
	argv, _ := syscall.SlicePtrFromStrings([]string{strings.Repeat("\x01", 32000)})
	environ, _ := syscall.SlicePtrFromStrings(nil)
	var storm sync.WaitGroup
	room := make(chan bool, 16) // a prison has a limit for threads
	for range threads {
		storm.Add(1)
		room <- true
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the function
			unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&environ[0])))
			storm.Done()
			<-room
			if end == "killed" {
				killThread()
			}
		}()
	}
	storm.Wait()
	return 0
}

// killThread makes the kernel kill this thread, which then does not call exit.
func killThread() {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_GETPPID},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_THREAD},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	unix.Syscall(unix.SYS_GETPPID, 0, 0, 0)
}

// TestRecorderMemory has threads make calls that fail. The recorder is a process of the host: it must not keep all of the arguments, which are
// 128 MB for each way to end.
func TestRecorderMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test (scripts/test --everywhere)")
	}
	const threads, most = 4000, 256 << 10 // kB
	_, s, p := recorded(t)
	bringSelf(t, p)
	recorder := recorderOf(t, s, 0)
	for _, end := range []string{"exits", "killed"} {
		status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"./try"}, Env: []string{fmt.Sprintf("%s=%s %d", stormEnv, end, threads)}, Stderr: os.Stderr})
		if err != nil || status != 0 {
			t.Fatal(end, status, err)
		}
		if err := execs.Complete(t.Context(), s.Dir); err != nil {
			t.Fatal(err)
		}
		kept := highestMemory(t, recorder)
		t.Logf("%s: %d kB", end, kept)
		if kept > most {
			t.Errorf("%s: the recorder has %d kB, more than %d", end, kept, most)
		}
	}
	if now := recorderOf(t, s, 0); now != recorder {
		t.Errorf("the recorder %d has ended, and %d goes on", recorder, now)
	}
}

// highestMemory returns the highest resident size of a process so far, in kB.
func highestMemory(t *testing.T, pid int) (size int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &size); err != nil {
		t.Fatal(err)
	}
	return size
}
