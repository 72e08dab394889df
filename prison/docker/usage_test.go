package docker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// TestUsage reads the files of both versions of control groups.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  prison.Usage
	}{
		"version 2": {map[string]string{
			"cpu.stat": "usage_usec 1500000\nuser_usec 1\n", "memory.current": "5000\n", "memory.stat": "anon 1\ninactive_file 2000\n",
			"io.stat": "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n", "pids.current": "4\n", "memory.events": "oom 3\noom_kill 2\n",
		}, prison.Usage{CPU: 1500 * time.Millisecond, Memory: 3000, Read: 11, Written: 22, Processes: 4, Killed: 2}},
		"version 1": {map[string]string{
			"cpuacct.usage": "1500000000\n", "cpu.stat": "nr_periods 0\n", "memory.usage_in_bytes": "5000\n", "memory.stat": "inactive_file 1\ntotal_inactive_file 2000\n",
			"blkio.throttle.io_service_bytes": "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\nTotal 30\n", "pids.current": "4\n", "memory.oom_control": "under_oom 0\noom_kill 2\n",
		}, prison.Usage{CPU: 1500 * time.Millisecond, Memory: 3000, Read: 10, Written: 20, Processes: 4, Killed: 2}},
		"nothing": {nil, prison.Usage{CPU: -1, Memory: -1, Read: -1, Written: -1, Processes: -1, Killed: -1}},
	} {
		dir := t.TempDir()
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := usageOf(prison.Group{t.TempDir(), dir}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "memory.kmem.tcp.limit_in_bytes")
	if setSocketLimit(prison.Group{dir}, 5) == nil {
		t.Error("a group without the file has a limit")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := setSocketLimit(prison.Group{t.TempDir(), dir}, 5)
	if content, readErr := os.ReadFile(file); err != nil || string(content) != "5" {
		t.Errorf("limit %q, %v, %v", content, err, readErr)
	}
	if g, err := groupOf(os.Getpid(), "0123456789abcdef"); err == nil {
		t.Errorf("this process is in the container's group: %v", g)
	}
}
