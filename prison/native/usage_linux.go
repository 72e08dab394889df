package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/walls"
)

// clockTick is the unit of times in /proc: the kernel shows them in hundredths of a second on all machines that Go supports.
const clockTick = time.Second / 100

// Usage implements [prison.Measurer]. It adds up the usage of init and of all processes below init. Every user may read it. Init's own
// numbers include the time of processes that have ended.
func (backend) Usage(_ context.Context, s prison.Spec) (prison.Usage, error) {
	st, err := readState(s.Dir)
	if err != nil || !st.Init.alive() {
		return prison.Usage{}, errors.Join(prison.ErrNotRunning, err)
	}
	u := prison.Usage{Read: -1, Written: -1}
	children, fields := processes()
	for next := []int{st.Init.PID}; len(next) > 0; next = next[1:] {
		pid := next[0]
		next = append(next, children[pid]...)
		f := fields[pid]
		u.CPU += time.Duration(number(f, 14)+number(f, 15)+number(f, 16)+number(f, 17)) * clockTick
		u.Processes += number(f, 20) // field 20 counts threads
		u.Memory += number(f, 24) * int64(os.Getpagesize())
	}
	for _, dir := range st.Cgroups {
		addGroup(&u, dir)
	}
	return u, nil
}

// processes reads all processes of this machine: their children, and the fields of proc_pid_stat(5) from the third on.
func processes() (children map[int][]int, fields map[int][]string) {
	children, fields = map[int][]int{}, map[int][]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f, err := walls.StatFields(pid)
		if err != nil || len(f) == 0 {
			continue // it has ended
		}
		fields[pid] = f
		parent := int(number(f, 4))
		children[parent] = append(children[parent], pid)
	}
	return children, fields
}

// number returns the nth field of proc_pid_stat(5), counted from 1, or 0 if there is none.
func number(fields []string, n int) int64 {
	if n-3 >= len(fields) {
		return 0
	}
	value, _ := strconv.ParseInt(fields[n-3], 10, 64)
	return value
}

// addGroup adds what only a control group counts: processes that were killed for lack of memory, and the use of disks.
func addGroup(u *prison.Usage, dir string) {
	for _, name := range []string{"memory.events", "memory.oom_control"} { // of version 2, and of version 1
		for line := range strings.Lines(readAll(dir, name)) {
			if kills, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				n, _ := strconv.ParseInt(kills, 10, 64)
				u.Killed += n
			}
		}
	}
	for line := range strings.Lines(readAll(dir, "io.stat")) {
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case key == "rbytes":
				u.Read = max(u.Read, 0) + n
			case key == "wbytes":
				u.Written = max(u.Written, 0) + n
			}
		}
	}
}

func readAll(dir, name string) string {
	content, _ := os.ReadFile(filepath.Join(dir, name))
	return string(content)
}
