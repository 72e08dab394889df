package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
)

// noCores is the only limit with which the kernel starts no program of the host's for a core dump, see core(5): where
// dumps go into a pipe, it does so for 0, as root and with the agent's memory for its input.
func noCores() *container.Ulimit { return &container.Ulimit{Name: "core", Soft: 1, Hard: 1} }

// Numbers of limits, as getrlimit(2) has them on every machine but a few rare ones.
const (
	limitFiles   = 7
	limitLocked  = 8
	limitPending = 11
	limitQueues  = 12
)

// pendingSignals are for each process that there may be; timers count as one, too.
const pendingSignals = 16

// ulimits bound what uses the kernel's memory without being counted by every kernel's control groups. They are no more than
// we could have ourselves: an engine may not be able to give more than it has.
func ulimits(l prison.Limits) []*container.Ulimit {
	all := []*container.Ulimit{noCores(), {Name: "nice"}, {Name: "rtprio"}}
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

// limitSockets bounds what sockets hold, which version 1 of control groups counts apart. Engines take a limit for it and
// set none: runc has not known it since 1.0. Nothing of the agent runs yet.
func (e *engine) limitSockets(ctx context.Context, p *platform, r *record, s prison.Spec) {
	if p.CgroupVersion == "2" || p.foreign(s.Runtime) { // counted with the rest, or within a process of the runtime
		return
	}
	if err := e.writeSocketLimit(ctx, r.Container, s.Limits.Sockets()); err != nil {
		p.lacks(prison.LooseMemoryLimit, fmt.Sprintf("memory: what sockets hold is not counted (%v)", err))
	}
}

// writeSocketLimit writes it where the engine is on this machine and the caller is root.
func (e *engine) writeSocketLimit(ctx context.Context, id string, limit int64) error {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerInspect(bounded, id)
	if err != nil || c.State == nil || c.State.Pid == 0 {
		return e.failed(ctx, "inspect container", err)
	}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.State.Pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		// On another machine's engine the number is that of somebody else's process here.
		if len(fields) == 3 && fields[1] == "memory" && strings.Contains(fields[2], id) {
			file := filepath.Join("/sys/fs/cgroup/memory", fields[2], "memory.kmem.tcp.limit_in_bytes")
			return os.WriteFile(file, strconv.AppendInt(nil, limit, 10), 0)
		}
	}
	return errors.New("its control group is not in /sys/fs/cgroup/memory")
}
