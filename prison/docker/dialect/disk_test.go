package dialect_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"

	"github.com/docker/docker/api/types/system"
)

// TestFullDisk checks which errors are about the engine's disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := dialect.Platform{Info: system.Info{DockerRootDir: "/var/lib/engine"}}
	at := func(path string) error {
		return fmt.Errorf("fill home: %w", &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOSPC})
	}
	for _, c := range []struct {
		err    error
		output []string
		full   bool
	}{
		{err: errors.New("Error response from daemon: mkdir /x/overlay2/1: no space left on device"), full: true},
		{err: errors.New("step 2: returned a non-zero code: 1"), output: []string{"cp: No space left on device"}, full: true},
		{err: at("/var/lib/engine/volumes/x"), full: true},
		{err: at("/home/user/repository/.git/airlock/1234/prison/container.json")},
		{err: errors.New("mkdir /sys/fs/cgroup/memory/docker/1: no space left on device")},
		{err: errors.New("no such image")},
		{},
	} {
		got := p.Explained(c.err, c.output...)
		full, ok := errors.AsType[*dialect.FullDisk](got)
		if ok != c.full || c.err != nil && got.Error() != c.err.Error() || !errors.Is(got, c.err) {
			t.Errorf("%v: %v", c.err, got)
		}
		if ok && full.Next()[0] != "df -h /var/lib/engine  # the disk of the container engine" {
			t.Errorf("%v: %q", c.err, full.Next())
		}
	}
}
