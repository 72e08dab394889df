//go:build linux

package native_test

import (
	"encoding/binary"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// TestInitHarmed makes the agent change PID 1 in every way that its uid allows. No other prison may be affected: a
// read-only prison continues, Stop ends this one, and the next start makes a healthy init.
func TestInitHarmed(t *testing.T) {
	b, s := prepared(t)
	looking := s
	looking.ReadOnly = true
	look, err := b.Open(t.Context(), looking)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	ofInit := func(call uintptr, args ...uintptr) calls.Call {
		c := calls.Call{Number: call, Data: make([]byte, 16)}
		copy(c.Args[:], args)
		return c
	}
	limit := func(resource uintptr, most uint64) calls.Call {
		c := ofInit(unix.SYS_PRLIMIT64, 1, resource, calls.Pointer)
		c.Data = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, most), most)
		return c
	}
	const idle, lowest, ioIdle = 5, 19, 3 << 13
	for what, harm := range map[string]calls.Call{
		"no descriptors":        limit(unix.RLIMIT_NOFILE, 0),
		"no processes":          limit(unix.RLIMIT_NPROC, 0),
		"no memory":             limit(unix.RLIMIT_DATA, 0),
		"no address space":      limit(unix.RLIMIT_AS, 0),
		"no processor time":     limit(unix.RLIMIT_CPU, 0),
		"the last to run":       ofInit(unix.SYS_SCHED_SETSCHEDULER, 1, idle, calls.Pointer),
		"the lowest priority":   ofInit(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 1, lowest),
		"the last to read disk": ofInit(unix.SYS_IOPRIO_SET, 1, 1, ioIdle),
		"killed":                ofInit(unix.SYS_KILL, 1, uintptr(unix.SIGKILL)),
		"stopped":               ofInit(unix.SYS_KILL, 1, uintptr(unix.SIGSTOP)),
	} {
		if _, err := b.Start(t.Context(), s); err != nil {
			t.Fatalf("after the harm before %q: %v", what, err)
		}
		k := stateOf(t, s)
		p, err := b.Attach(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		// Init may end before it can answer.
		if results, err := calls.Make(t.Context(), p, []calls.Call{harm}); err == nil && results[0] < 0 {
			// not negative
			t.Errorf("%s: %v, which doc.go says is allowed", what, unix.Errno(-results[0])) //nolint:gosec
		}
		if status, err := look.Exec(t.Context(), prison.Process{Argv: []string{"true"}}); err != nil || status != 0 {
			t.Errorf("%s: the prison that looks: %d, %v", what, status, err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		expectNothing(t, s, k)
	}
}
