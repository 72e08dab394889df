package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
)

// limitSockets limits the memory of a group's sockets, which version 1 of control groups counts separately. The engine cannot do it: engines accept
// such a limit, but runc has ignored it since 1.0. No process of the agent runs yet.
func (e *engine) limitSockets(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) {
	if p.Foreign(s.Runtime) { // the sockets are in the memory of the runtime's process
		return
	}
	p.Lacks(prison.UncountedNetlink, netlinkText)
	err := e.socketsUncountable(p)
	if err == nil && p.CgroupVersion != "2" {
		err = e.writeSocketLimit(ctx, r.Container, s.Limits.Sockets())
	}
	if err != nil {
		p.Lacks(prison.LooseMemoryLimit, socketsText(err))
	}
}

// netlinkText names memory that no version of control groups counts. The keeper of a native prison checks that memory, but a container
// has no such keeper.
const netlinkText = "memory of netlink sockets is not counted"

func socketsText(cause error) string {
	return fmt.Sprintf("memory of sockets is not counted (%v)", cause)
}

// errNotRoot is the reason why an ordinary user's container has no limit for sockets.
var errNotRoot = errors.New("version 1 of control groups, which only root may write to")

// socketsUncountable returns the reason why the memory of sockets cannot be limited here, if that is known before a
// container is made. Version 2 counts it with other memory.
func (e *engine) socketsUncountable(p *dialect.Platform) error {
	if p.CgroupVersion != "2" && os.Geteuid() != 0 {
		return errNotRoot
	}
	return nil
}

// writeSocketLimit sets the limit if the engine is on this machine and the caller is root.
func (e *engine) writeSocketLimit(ctx context.Context, id string, limit int64) error {
	pid, err := e.firstProcess(ctx, id)
	if err != nil || pid == 0 {
		return err
	}
	g, err := groupOf(pid, id)
	if err != nil {
		return err
	}
	return setSocketLimit(g, limit)
}

// setSocketLimit limits the memory of a group's sockets, where a file of version 1 does that.
func setSocketLimit(g prison.Group, limit int64) error {
	for _, dir := range g {
		f, err := os.OpenFile(filepath.Join(dir, "memory.kmem.tcp.limit_in_bytes"), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(strconv.FormatInt(limit, 10))
			err = errors.Join(err, f.Close())
		}
		return err
	}
	return errors.New("its control group does not count it")
}

// limitInside limits the agent's processes in the runtime's own kernel. The host's limit applies to that kernel as a whole, and the
// kernel ends when it reaches that limit.
func (e *engine) limitInside(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) error {
	if !p.Foreign(s.Runtime) {
		return nil
	}
	root := &inside.Container{Engine: e.Engine, ID: r.Container, User: "0:0"}
	limit := fmt.Sprintf("echo %d >/sys/fs/cgroup/pids/pids.max", s.Limits.OrDefault().PIDs)
	status, err := root.Plain(ctx, []string{inside.Shell, "-c", limit})
	if err == nil && status != 0 {
		err = dialect.Unavailable(fmt.Sprintf("the runtime %q does not limit processes", p.RuntimeOf(s)), "git airlock start --runtime runsc")
	}
	return err
}
