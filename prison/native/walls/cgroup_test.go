//go:build linux

package walls

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestPredictedControllers checks groups in which controllers can be enabled, and that predictControllers leaves them unchanged.
func TestPredictedControllers(t *testing.T) {
	for what, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the root":           {map[string]string{"cgroup.procs": "1\n2\n"}, []string{"cpu", "memory", "pids"}},
		"an empty group":     {map[string]string{"cgroup.type": "domain\n"}, []string{"cpu", "memory", "pids"}},
		"one with processes": {map[string]string{"cgroup.type": "domain\n", "cgroup.procs": "1\n"}, nil},
		"one of threads":     {map[string]string{"cgroup.type": "threaded\n"}, nil},
		"one that was asked": {map[string]string{"cgroup.type": "domain\n", childControllers: "memory pids\n"}, []string{"cpu", "memory", "pids"}},
		"one with less":      {map[string]string{"cgroup.type": "domain\n", ownControllers: "io pids\n"}, []string{"pids"}},
	} {
		dir := t.TempDir()
		files := map[string]string{"cgroup.procs": "", ownControllers: "cpuset cpu io memory pids\n", childControllers: ""}
		for name, content := range c.files {
			files[name] = content
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := cgroups{root: dir, own: dir}.unified("x", predictControllers)
		var controllers []string
		if got != nil {
			controllers = slices.Sorted(slices.Values(got.controllers))
		}
		if !slices.Equal(controllers, c.want) {
			t.Errorf("%s: %q, want %q", what, controllers, c.want)
		}
		for name, content := range files {
			if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(now) != content {
				t.Errorf("%s: %s has become %q, %v", what, name, now, err)
			}
		}
	}
}

// TestSweep removes groups that killed prisons have left, also of other airlocks. A folder with content plays a group with processes.
func TestSweep(t *testing.T) {
	above := t.TempDir()
	for name, stays := range map[string]bool{
		"box-1-999999999-1": false, fmt.Sprintf("box-2-%d-1", os.Getpid()): true, "box-3": true, "box-4/full": true, "box-5-999999999-1/full": true, "other-999999999-1": true,
	} {
		if err := os.MkdirAll(filepath.Join(above, name), 0o700); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(filepath.Join(above, name)); (err == nil) != stays {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	sweep(above)
}

// TestEnterRemovedGroup enters a group that another process has removed while it was empty.
func TestEnterRemovedGroup(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	l := &Limits{groups: []group{{dir: filepath.Join(t.TempDir(), "group"), settings: []setting{{file: "limit", value: "1"}}}}}
	dir := l.groups[0].dir
	if err := errors.Join(l.Make(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if err := l.Enter(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"cgroup.procs": strconv.Itoa(child.Process.Pid), "limit": "1"} {
		// Here the file is new and unreadable. In a real control group it exists already.
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != int64(len(content)) {
			t.Errorf("%s: %v, %v, want %d bytes", name, info, err, len(content))
		}
	}
}
