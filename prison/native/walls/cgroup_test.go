//go:build linux

package walls

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestForetold checks groups in which controllers can be enabled, and that foretold leaves them unchanged.
func TestForetold(t *testing.T) {
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
		got := cgroups{root: dir, own: dir}.unified("x", foretold)
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
