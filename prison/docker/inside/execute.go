package inside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/watch/containers"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// execute makes the engine execute a command as the agent. If programs are recorded, the command waits until the record begins.
// Programs with the hidden paths are not recorded.
func (r *Container) execute(ctx context.Context, o container.ExecOptions, hidden ...string) (id string, stream types.HijackedResponse, err error) {
	if r.Recorded {
		o.Cmd = containers.Enter(o.Cmd)
	}
	o.User = r.User
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	c, err := r.ContainerExecCreate(bounded, r.ID, o)
	if err != nil {
		return "", stream, r.lost(ctx, "execute command", err)
	}
	if stream, err = r.ContainerExecAttach(ctx, c.ID, container.ExecAttachOptions{Tty: o.Tty}); err != nil {
		return "", stream, r.lost(ctx, "execute command", err)
	}
	if !r.Recorded {
		return c.ID, stream, nil
	}
	pid, err := r.pidOf(ctx, c.ID)
	if err != nil {
		stream.Close()
		return "", stream, r.lost(ctx, "ask for the command's process", err)
	}
	if pid != 0 {
		err = containers.Follow(r.HostDir, pid, hidden)
	}
	if err != nil {
		stream.Close()
		return "", stream, r.unrecorded(ctx, err)
	}
	return c.ID, stream, nil
}

// unrecorded returns the error for a command whose programs cannot be recorded for a reason.
func (r *Container) unrecorded(ctx context.Context, reason error) error {
	if !errors.Is(reason, containers.ErrEnded) {
		return fmt.Errorf("record programs: %w", reason)
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	if c, err := r.ContainerInspect(bounded, r.ID); err == nil && Runs(&c) && c.State.Pid != 0 && c.State.Pid != containers.First(r.HostDir) {
		return restarted("the record of programs has ended")
	}
	return prison.ErrNotRunning
}

// pidOf returns the process id of a command on the host, and zero for a command that the engine could not start.
func (r *Container) pidOf(ctx context.Context, id string) (pid int, err error) {
	const pause = 2 * time.Millisecond
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	for ; ; time.Sleep(pause) {
		i, err := r.ContainerExecInspect(bounded, id)
		switch {
		case err != nil:
			return 0, err
		case i.Pid != 0:
			return i.Pid, nil
		case !i.Running && i.ExitCode != 0:
			return 0, nil
		}
	}
}
