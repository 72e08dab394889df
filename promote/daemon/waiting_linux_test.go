package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/airlock"
)

// TestWaitingEnds waits for a process that works, and for one that is stopped. The times are simulated.
func TestWaitingEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	flock, err := exec.LookPath("flock") // it is in util-linux
	if err != nil {
		t.Fatal(err)
	}
	const name = "a) R b" // looks like the end of the name in /proc/PID/stat, and a state
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(flock, program); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(program, file, "sh", "-c", "echo held; exec sleep 60")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	pid := lockHolder(file)
	if pid == 0 {
		t.Fatal("the holder is not found")
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	var said []string
	wait := Waiting(func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	for _, waited := range []time.Duration{0, silentTime / 2, silentTime, silentTime + 1, workTime / 2} {
		if err := wait(file, waited); err != nil {
			t.Fatalf("after %s: %s", waited, err)
		}
		if waited < silentTime && len(said) > 0 {
			t.Errorf("after %s it says %q", waited, said)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], fmt.Sprintf("waiting for process %d (%s)", pid, name)) {
		t.Errorf("it says %q", said)
	}
	var busy *BusyError
	if err := wait(file, workTime); !errors.As(err, &busy) || busy.Holder.PID != pid || busy.Holder.Stopped || !errors.Is(err, airlock.ErrBusy) {
		t.Errorf("after %s: %v", workTime, err)
	}

	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for end := time.Now().Add(time.Minute); !holderOf(file).Stopped && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	said = nil
	for waited := time.Duration(0); waited < stoppedTime+silentTime/2; waited += silentTime / 10 {
		if err = wait(file, waited); err != nil && waited < stoppedTime {
			t.Fatalf("after %s: %s", waited, err)
		}
	}
	if !errors.As(err, &busy) || !busy.Holder.Stopped || busy.Next()[0] != fmt.Sprintf("kill -CONT %d", pid) {
		t.Errorf("a stopped process: %v", err)
	}
	if len(said) != 1 || !strings.HasSuffix(said[0], ", which is stopped") {
		t.Errorf("it says %q", said)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestShownWithoutValues checks that a message has no word that may be a value.
func TestShownWithoutValues(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/git-airlock\x00run\x00--env\x00TOKEN=secret\x00": "git-airlock run",
		"git-airlock\x00--dry-run\x00start\x00":                    "git-airlock",
		"git-airlock\x00":                                          "git-airlock",
		"/bin/sh\x00-c\x00TOKEN=secret ./x\x00":                    "sh",
		"/" + strings.Repeat("x", 200):                             strings.Repeat("x", commandLimit),
	} {
		if got := shown(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	if got := (Holder{PID: 7, Command: shown("")}).String(); got != "process 7" {
		t.Errorf("a process that has ended: %s", got)
	}
}
