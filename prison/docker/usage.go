package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
	if c == nil || !inside.Runs(c) {
		return prison.Usage{}, prison.ErrNotRunning
	}
	g, err := groupOf(c.State.Pid, c.ID)
	if err != nil {
		return prison.Usage{}, err
	}
	return g.usage(), nil
}

// group is a control group: one folder with version 2, and a folder for each controller with version 1.
type group []string

// groupOf finds the control group of a container by the pid of its first process. If the engine is on another machine, the pid belongs to
// an unrelated process here, whose group does not contain the container's id.
func groupOf(pid int, id string) (g group, err error) {
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

// usage reads the resources that the group uses. It counts cached files only if they are in use, as "docker stats" does.
func (g group) usage() prison.Usage {
	u := prison.Usage{Read: -1, Written: -1, Killed: -1}
	u.CPU = time.Duration(g.number("cpuacct.usage"))
	if usage, ok := g.named("cpu.stat", "usage_usec"); ok {
		u.CPU = time.Duration(usage) * time.Microsecond
	}
	u.Memory = g.number("memory.current", "memory.usage_in_bytes")
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if unused, ok := g.named("memory.stat", name); ok && u.Memory >= 0 {
			u.Memory = max(u.Memory-unused, 0)
			break
		}
	}
	u.Processes = g.number("pids.current")
	for _, name := range []string{"memory.events", "memory.oom_control"} {
		if killed, ok := g.named(name, "oom_kill"); ok {
			u.Killed = max(u.Killed, 0) + killed
		}
	}
	g.disks(&u)
	return u
}

// disks adds up the bytes of all disks. It reads lines such as "8:0 rbytes=1 wbytes=2", and with version 1 "8:0 Read 1".
func (g group) disks(u *prison.Usage) {
	for line := range strings.Lines(g.content("io.stat") + g.content("blkio.throttle.io_service_bytes")) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" =\n", r) })
		for i := 1; i+1 < len(fields); i += 2 {
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			switch {
			case err != nil:
			case fields[i] == "rbytes" || fields[i] == "Read":
				u.Read = max(u.Read, 0) + n
			case fields[i] == "wbytes" || fields[i] == "Write":
				u.Written = max(u.Written, 0) + n
			}
		}
	}
}

// content returns the content of a file of the group. It is empty if there is none.
func (g group) content(name string) string {
	for _, dir := range g {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(content)
		}
	}
	return ""
}

// number returns the number in the first of the files that exists, or -1 if there is none.
func (g group) number(names ...string) int64 {
	for _, name := range names {
		if n, err := strconv.ParseInt(strings.TrimSpace(g.content(name)), 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// named returns the number that follows a name in a file of the group.
func (g group) named(file, name string) (n int64, found bool) {
	for line := range strings.Lines(g.content(file)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+" "); is {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

var _ prison.Measurer = (*Backend)(nil)
