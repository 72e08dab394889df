package docker_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestLeftByEngine puts processes into the container's control group that the engine does not know, as after it was killed. A stop, a
// start and a wipe must end them, even if they are frozen. A process of the phantom in no container must stay, since it reads the
// workspace.
func TestLeftByEngine(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as the phantom")
	}
	b := need(t)
	s, _ := started(t, b, func(*prison.Spec) {})
	reader := asPhantom(t, s)
	for _, step := range []struct {
		name string
		end  func() error
	}{
		{"stop", func() error { return b.Stop(t.Context(), s) }},
		{"start", func() error { _, err := b.Start(t.Context(), s); return err }},
		{"wipe", func() error { return b.Wipe(t.Context(), s) }},
	} {
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		boxes, _ := labelled(t, s.ID)
		if len(boxes) != 1 {
			t.Fatalf("%s: %d containers", step.name, len(boxes))
		}
		left := asPhantom(t, s)
		leave(t, boxes[0].ID, left.Process.Pid)
		if err := step.end(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		killed(t, step.name, left)
	}
	if err := reader.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process outside: %v", err)
	}
}

// asPhantom starts a process as the phantom. Only a signal ends it.
func asPhantom(t *testing.T, s prison.Spec) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "4444")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.GID)}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	return c
}

// leave puts a process into a control group with a container's id in its path, and freezes it.
func leave(t *testing.T, container string, pid int) {
	t.Helper()
	top, members, state, frozen := "/sys/fs/cgroup/freezer", "tasks", "freezer.state", "FROZEN"
	if _, err := os.Stat(top); err != nil { // version 2
		top, members, state, frozen = "/sys/fs/cgroup", "cgroup.procs", "cgroup.freeze", "1"
	}
	dir := filepath.Join(top, "airlock-test-"+container)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	for _, line := range [][2]string{{members, strconv.Itoa(pid)}, {state, frozen}} {
		if err := os.WriteFile(filepath.Join(dir, line[0]), []byte(line[1]), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// killed waits until a process has ended, which must be because of SIGKILL.
func killed(t *testing.T, what string, c *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%s: the process ends with %v", what, err)
	}
}
