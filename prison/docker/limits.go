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
)

// limitSockets bounds what sockets hold, which version 1 of control groups counts apart. Engines take a limit for it and
// set none: runc has not known it since 1.0. Nothing of the agent runs yet.
func (e *engine) limitSockets(ctx context.Context, p *platform, r *record, s prison.Spec) {
	if p.foreign(s.Runtime) { // counted within a process of the runtime
		return
	}
	err := e.socketsUncountable(p)
	if err == nil && p.CgroupVersion != "2" {
		err = e.writeSocketLimit(ctx, r.Container, s.Limits.Sockets())
	}
	if err != nil {
		p.lacks(prison.LooseMemoryLimit, socketsText(err))
	}
}

func socketsText(cause error) string {
	return fmt.Sprintf("memory: what sockets hold is not counted (%v)", cause)
}

// errNotRoot says why an ordinary user's container has no limit for sockets.
var errNotRoot = errors.New("version 1 of control groups, which only root may write to")

// socketsUncountable returns why what sockets hold cannot be limited here, as far as that is known before a container is
// made; version 2 counts it with the rest.
func (e *engine) socketsUncountable(p *platform) error {
	if p.CgroupVersion != "2" && os.Geteuid() != 0 {
		return errNotRoot
	}
	return nil
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

// limitInside bounds the agent's processes where the runtime's kernel counts them itself: to reach the host's limit, which is
// for that kernel as a whole, is its end.
func (e *engine) limitInside(ctx context.Context, p *platform, r *record, s prison.Spec) error {
	if !p.foreign(s.Runtime) {
		return nil
	}
	root := &running{engine: e, id: r.Container, user: "0:0"}
	limit := fmt.Sprintf("echo %d >/sys/fs/cgroup/pids/pids.max", s.Limits.OrDefault().PIDs)
	status, err := root.plain(ctx, []string{defaultSh, "-c", limit})
	if err == nil && status != 0 {
		err = unavailable(fmt.Sprintf("the runtime %q does not limit processes", p.runtime(s)), "git airlock start --runtime runsc")
	}
	return err
}
