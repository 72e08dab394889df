package native

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/gitops/procstat"
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
	prison.Group(st.Cgroups).Count(&u)
	return u, nil
}

// processes reads all processes of this machine: their children, and the fields of proc_pid_stat(5) from the third on.
func processes() (children map[int][]int, fields map[int][]string) {
	children, fields = map[int][]int{}, map[int][]string{}
	pids, _ := walls.Numbers("/proc")
	for _, pid := range pids {
		f, err := procstat.Fields(pid)
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
