package containers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// leftPatience is how long EndLeft waits for the end of processes.
const leftPatience = 5 * time.Second

// EndLeft ends the processes with a group that are left of a container that has ended. It returns those that do not end in time. An engine
// that was killed may not know a command that it was starting, and leave the command's process, even frozen.
func EndLeft(ctx context.Context, container string, gid int) (left []int) {
	const pause = 5 * time.Millisecond
	for deadline := time.Now().Add(leftPatience); ; time.Sleep(pause) {
		left = members(container, gid)
		if len(left) == 0 || ctx.Err() != nil || time.Now().After(deadline) {
			return left
		}
		for _, pid := range left {
			end(container, gid, pid)
		}
	}
}

// members returns the processes in a container that have a group.
func members(container string, gid int) []int {
	all, _ := walls.Numbers("/proc")
	return slices.DeleteFunc(all, func(pid int) bool { return !isMember(container, gid, pid) })
}

// isMember reports whether a process is in a container, has a real group, and has not ended. Processes of the engine that serve the
// container have another group.
func isMember(container string, gid, pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // without a file, it has ended
	return bytes.Contains(status, fmt.Appendf(nil, "\nGid:\t%d\t", gid)) && !bytes.Contains(status, []byte("\nState:\tZ")) &&
		owns(container, pid)
}

// end kills a process of a container. The caller checks whether the process has ended. With control groups of version 1, a frozen process
// does not die (cgroup-v1/freezer-subsystem in the kernel's documentation), so its group is thawed.
func end(container string, gid, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if !isMember(container, gid, pid) {
		return // another process has the number now
	}
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(groups)) { // see proc_pid_cgroup(5)
		if _, group, there := strings.Cut(strings.TrimSpace(line), ":freezer:"); there {
			os.WriteFile(filepath.Join("/sys/fs/cgroup/freezer", group, "freezer.state"), []byte("THAWED"), 0) //nolint:errcheck
		}
	}
}
