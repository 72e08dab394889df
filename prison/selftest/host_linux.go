package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// judgePrivate compares file systems by their device numbers, which are the kernel's.
func judgePrivate(_ Subject, out string) (seen, broken string) {
	told := lines(out)
	if len(told) != 2 {
		return "", "stat says " + out
	}
	for _, line := range told {
		number, name, _ := strings.Cut(line, " ")
		info, err := os.Stat(name)
		if err != nil {
			continue // then it cannot be ours
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && number == fmt.Sprint(st.Dev) {
			return "", name + " is the host's"
		}
	}
	return "neither is the host's", ""
}

// memoryOfGroup returns the least memory that the control groups of a uid's processes have.
func memoryOfGroup(uid int) (bytes int64, known bool) {
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range statuses {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), fmt.Sprintf("\nUid:\t%d\t", uid)) {
			continue
		}
		for _, file := range memoryFiles(filepath.Dir(path)) {
			content, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
			if err == nil && (!known || n < bytes) {
				bytes, known = n, true
			}
		}
	}
	return bytes, known
}

// memoryFiles returns where the limits of a process's groups would be, see cgroups(7): its own group's and those
// above it count.
func memoryFiles(process string) (files []string) {
	groups, _ := os.ReadFile(process + "/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for group := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(group), ":", 3)
		if len(fields) != 3 {
			continue
		}
		file, kind := "memory.limit_in_bytes", "cgroup "
		switch {
		case fields[1] == "":
			file, kind = "memory.max", "cgroup2 "
		case !strings.Contains(fields[1], "memory"):
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			before, after, _ := strings.Cut(mount, " - ")
			m := strings.Fields(before)
			if len(m) < 5 || !strings.HasPrefix(after, kind) || kind == "cgroup " && !strings.Contains(after, "memory") {
				continue
			}
			for dir := fields[2]; ; dir = filepath.Dir(dir) {
				files = append(files, filepath.Join(m[4], strings.TrimPrefix(dir, m[3]), file))
				if len(dir) <= 1 {
					break
				}
			}
		}
	}
	return files
}
