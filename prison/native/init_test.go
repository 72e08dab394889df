//go:build linux

package native_test

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// TestInitUnharmed checks that the agent can change neither PID 1 nor its threads in any way that the same uid would allow, and that init
// still answers.
func TestInitUnharmed(t *testing.T) {
	b, s := prepared(t)
	if i, err := b.Start(t.Context(), s); err != nil || i.Lacks(prison.SharedInit) {
		t.Fatalf("%v, %v", i, err)
	}
	p := attach(t, b, s)
	const idle, lowest, ioIdle = 5, 19, 3 << 13
	for _, thread := range initThreads(t, b, s) {
		ofInit := func(call uintptr, args ...uintptr) calls.Call {
			c := calls.Call{Number: call, Data: make([]byte, 64)}
			copy(c.Args[:], args)
			return c
		}
		limit := func(resource uintptr, most uint64) calls.Call {
			c := ofInit(unix.SYS_PRLIMIT64, thread, resource, calls.Pointer)
			c.Data = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, most), most)
			return c
		}
		for what, harm := range map[string]calls.Call{
			"no descriptors":        limit(unix.RLIMIT_NOFILE, 0),
			"no processes":          limit(unix.RLIMIT_NPROC, 0),
			"no memory":             limit(unix.RLIMIT_DATA, 0),
			"no address space":      limit(unix.RLIMIT_AS, 0),
			"no processor time":     limit(unix.RLIMIT_CPU, 0),
			"the last to run":       ofInit(unix.SYS_SCHED_SETSCHEDULER, thread, idle, calls.Pointer),
			"few processors":        ofInit(unix.SYS_SCHED_SETAFFINITY, thread, 8, calls.Pointer),
			"the lowest priority":   ofInit(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, thread, lowest),
			"the last to read disk": ofInit(unix.SYS_IOPRIO_SET, 1, thread, ioIdle),
			"traced":                ofInit(unix.SYS_PTRACE, 0x4206, thread), // PTRACE_SEIZE
			"killed":                ofInit(unix.SYS_KILL, thread, uintptr(unix.SIGKILL)),
			"stopped":               ofInit(unix.SYS_KILL, thread, uintptr(unix.SIGSTOP)),
		} {
			if results, err := calls.Make(t.Context(), p, []calls.Call{harm}); err != nil || results[0] != -int64(unix.EPERM) {
				t.Errorf("%s, thread %d: %v, %v", what, thread, results, err)
			}
		}
	}
	if got := output(t, b, s, "echo answers"); got != "answers" {
		t.Errorf("afterwards: %q", got)
	}
}

// initThreads returns the ids of init's threads, as the agent sees them.
func initThreads(t *testing.T, b prison.Backend, s prison.Spec) (ids []uintptr) {
	t.Helper()
	for _, name := range strings.Fields(output(t, b, s, "ls /proc/1/task")) {
		id, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, uintptr(id))
	}
	if len(ids) < 2 {
		t.Fatalf("init has threads %d", ids)
	}
	return ids
}

// TestInitStopped stops init from outside. A read-only prison must continue, Stop must end the stopped prison, and the next start must
// make a new init.
func TestInitStopped(t *testing.T) {
	b, s := prepared(t)
	looking := s
	looking.ReadOnly = true
	look, err := b.Open(t.Context(), looking)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		if _, err := b.Start(t.Context(), s); err != nil {
			t.Fatalf("before signal %d: %v", signal, err)
		}
		k := stateOf(t, s)
		if err := unix.Kill(k.Init.PID, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
		if status, err := look.Exec(t.Context(), prison.Process{Argv: []string{"true"}}); err != nil || status != 0 {
			t.Errorf("signal %d: the read-only prison: %d, %v", signal, status, err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Errorf("signal %d: %v", signal, err)
		}
		expectNothing(t, s, k)
	}
}
