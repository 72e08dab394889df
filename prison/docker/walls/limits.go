package walls

import (
	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
)

// NoCores returns the only limit with which the kernel starts no program of the host for a core dump, see core(5). If core dumps go into
// a pipe, the kernel starts the program even with a limit of 0, as root and with the agent's memory as its input.
func NoCores() *container.Ulimit { return &container.Ulimit{Name: "core", Soft: 1, Hard: 1} }

// The numbers of limits in getrlimit(2), on all but a few rare architectures.
const (
	limitFiles   = 7
	limitLocked  = 8
	limitPending = 11
	limitQueues  = 12
)

// pendingSignals is the number of pending signals for each allowed process. Timers count, too.
const pendingSignals = 16

// Ulimits limits resources that use the kernel's memory and that the control groups of some kernels do not count.
// No limit is higher than this process's own, since an engine may be unable to set a limit above its own.
func Ulimits(l prison.Limits) []*container.Ulimit {
	all := []*container.Ulimit{NoCores(), {Name: "nice"}, {Name: "rtprio"}}
	for _, u := range []struct {
		name   string
		number int
		most   int64
	}{
		{"nofile", limitFiles, prison.MostFiles},
		{"sigpending", limitPending, pendingSignals * int64(l.PIDs)},
		{"msgqueue", limitQueues, 800 << 10},
		{"memlock", limitLocked, 8 << 20},
	} {
		most := u.most
		if own, known := ownLimit(u.number); known {
			// the exporter beside the container has the same uid and must have more, as in a native prison
			if u.number == limitFiles {
				own /= 4
			}
			most = min(most, own)
		}
		all = append(all, &container.Ulimit{Name: u.name, Soft: most, Hard: most})
	}
	return all
}
