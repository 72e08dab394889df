//go:build linux

package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// TestQuotas uses up resources inside that the kernel also counts for the user who started the prison. Outside, the user must still have
// some.
func TestQuotas(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	p := attach(t, b, s)
	greedy := make([]calls.Call, 300)
	for i := range greedy {
		greedy[i] = calls.Call{Number: unix.SYS_INOTIFY_INIT1}
	}
	results, err := calls.Make(t.Context(), p, greedy)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, r := range results {
		if r >= 0 {
			got++
		} else if r != -int64(unix.EMFILE) {
			t.Fatalf("inotify: %d", r)
		}
	}
	if got == 0 || got > 64 {
		t.Errorf("%d instances of inotify", got)
	}
	for name, resource := range map[string]int{"Max pending signals": unix.RLIMIT_SIGPENDING, "Max msgqueue size": unix.RLIMIT_MSGQUEUE} {
		var ours unix.Rlimit
		if err := unix.Getrlimit(resource, &ours); err != nil {
			t.Fatal(err)
		}
		line := strings.Fields(strings.TrimPrefix(output(t, b, s, "grep '^"+name+"' /proc/self/limits"), name))
		if want := []string{fmt.Sprint(ours.Cur / 2), fmt.Sprint(ours.Cur / 2)}; len(line) < 2 || line[0] != want[0] || line[1] != want[1] {
			t.Errorf("%s: %q, want %q", name, line, want)
		}
	}
}

// TestRealTime starts a prison from a shell with real-time priority, which the agent must not have.
func TestRealTime(t *testing.T) {
	if os.Geteuid() != 0 || exec.Command("chrt", "-f", "1", "true").Run() != nil {
		t.Skip("nobody here may have real-time priority")
	}
	b, s := prepared(t)
	startBy(t, s, "chrt", "-f", "1", "ionice", "-c", "1")
	if got := output(t, b, s, "for p in 1 self; do cut -d' ' -f18,40,41 /proc/$p/stat; done"); got != "25 0 0\n25 0 0" {
		t.Errorf("priority, real-time priority, policy: %q", got)
	}
}
