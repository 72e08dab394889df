package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
)

// groups is the folder with the control groups on Linux.
const groups = "/sys/fs/cgroup"

// Usage implements [prison.Measurer]. It reads the container's control group, which every user may do. If the runtime has a kernel of its
// own, the group contains the processes of the runtime.
func (b *Backend) Usage(ctx context.Context, s prison.Spec) (prison.Usage, error) {
	_, _, c, err := b.own(ctx, s)
	if err != nil {
		return prison.Usage{}, err
	}
	if inside.OutOfMemory(c) { // its control group is gone, with the number
		return prison.Usage{CPU: -1, Memory: -1, Read: -1, Written: -1, Processes: -1, Killed: 1}, nil
	}
	if !inside.Runs(c) {
		return prison.Usage{}, prison.ErrNotRunning
	}
	g, err := groupOf(c.State.Pid, c.ID)
	if err != nil {
		return prison.Usage{}, err
	}
	return usageOf(g), nil
}

// groupOf finds the control group of a container by the pid of its first process. If the engine is on another machine, the pid belongs to
// an unrelated process here, whose group does not contain the container's id.
func groupOf(pid int, id string) (g prison.Group, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, fmt.Errorf("find the control group: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		_, after, found := strings.Cut(fields[2], id)
		if !found {
			continue
		}
		scope, _, _ := strings.Cut(after, "/") // engines make groups below the container's group
		path := fields[2][:len(fields[2])-len(after)] + scope
		for _, dir := range []string{fields[1], ""} {
			if _, err := os.Stat(filepath.Join(groups, dir, path)); err == nil {
				g = append(g, filepath.Join(groups, dir, path))
				break
			}
		}
	}
	if len(g) == 0 {
		return nil, fmt.Errorf("the control group of the container is not in %s", groups)
	}
	return g, nil
}

// usageOf reads the resources that a group uses. It counts cached files only if they are in use, as "docker stats" does.
func usageOf(g prison.Group) prison.Usage {
	u := prison.Usage{Read: -1, Written: -1, Killed: -1}
	u.CPU = time.Duration(g.Number("cpuacct.usage"))
	if usage, ok := g.Named("cpu.stat", "usage_usec"); ok {
		u.CPU = time.Duration(usage) * time.Microsecond
	}
	u.Memory = g.Number("memory.current", "memory.usage_in_bytes")
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if unused, ok := g.Named("memory.stat", name); ok && u.Memory >= 0 {
			u.Memory = max(u.Memory-unused, 0)
			break
		}
	}
	u.Processes = g.Number("pids.current")
	g.Count(&u)
	return u
}

var _ prison.Measurer = (*Backend)(nil)
