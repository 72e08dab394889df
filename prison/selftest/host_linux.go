package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// evaluatePrivate compares the file systems inside with the host's by their device numbers, which the kernel assigns.
func evaluatePrivate(_ Subject, out string) (seen, broken string) {
	answers := lines(out)
	if len(answers) != 2 {
		return "", "stat printed " + out
	}
	for _, line := range answers {
		number, name, _ := strings.Cut(line, " ")
		info, err := os.Stat(name)
		if err != nil {
			continue // the host has no such folder to share
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && number == fmt.Sprint(st.Dev) {
			return "", name + " is the host's"
		}
	}
	return "neither is the host's", ""
}

// leastOfGroups returns the lowest value of a limit in the control groups of all processes with a gid: the agent's processes and init,
// which may have another uid.
func leastOfGroups(gid int, limit groupLimit) (least float64, known bool) {
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range statuses {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), fmt.Sprintf("\nGid:\t%d\t", gid)) {
			continue
		}
		for _, g := range groupsOf(filepath.Dir(path), limit.controller) {
			if n, ok := limit.read(g.folder, g.unified); ok && (!known || n < least) {
				least, known = n, true
			}
		}
	}
	return least, known
}

// group is the folder of a control group.
type group struct {
	folder  string
	unified bool // version 2
}

// groupsOf returns the groups of a process for a controller, see cgroups(7): its own group and the groups above it,
// whose limits also apply.
func groupsOf(process, controller string) (found []group) {
	positions, _ := os.ReadFile(process + "/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for position := range strings.Lines(string(positions)) {
		fields := strings.SplitN(strings.TrimSpace(position), ":", 3)
		if len(fields) != 3 {
			continue
		}
		unified := fields[1] == ""
		if !unified && !slices.Contains(strings.Split(fields[1], ","), controller) {
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			before, after, _ := strings.Cut(strings.TrimSpace(mount), " - ")
			m, kind := strings.Fields(before), strings.Fields(after)
			if len(m) < 5 || len(kind) < 3 || unified != (kind[0] == "cgroup2") ||
				!unified && (kind[0] != "cgroup" || !slices.Contains(strings.Split(kind[2], ","), controller)) {
				continue
			}
			for dir := fields[2]; len(dir) > 1; dir = filepath.Dir(dir) {
				found = append(found, group{filepath.Join(m[4], strings.TrimPrefix(dir, m[3])), unified})
			}
		}
	}
	return found
}
