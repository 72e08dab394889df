package walls

import (
	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
)

// NoCores returns the only limit with which the kernel starts no program of the host's for a core dump, see core(5): where
// dumps go into a pipe, it does so for 0, as root and with the agent's memory for its input.
func NoCores() *container.Ulimit { return &container.Ulimit{Name: "core", Soft: 1, Hard: 1} }

// The numbers of limits, as getrlimit(2) has them on every machine but a few rare ones.
const (
	limitFiles   = 7
	limitLocked  = 8
	limitPending = 11
	limitQueues  = 12
)

// pendingSignals are for each process that there may be; timers count as one, too.
const pendingSignals = 16

// Ulimits bound what uses the kernel's memory without being counted by every kernel's control groups. They are no more than
// we could have ourselves: an engine may not be able to give more than it has.
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
			if u.number == limitFiles { // as in a native prison: the exporter beside the container, of the same uid, must have more
				own /= 4
			}
			most = min(most, own)
		}
		all = append(all, &container.Ulimit{Name: u.name, Soft: most, Hard: most})
	}
	return all
}
