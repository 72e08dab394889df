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

// execute makes the engine execute a command as the agent. If programs are recorded, the command waits until the record begins. Programs
// at the hidden paths are not recorded.
func (r *Container) execute(ctx context.Context, o container.ExecOptions, hidden ...string) (id string, stream types.HijackedResponse, err error) {
	if r.Recorded {
		o.Cmd = containers.Enter(o.Cmd)
	}
	o.User = r.User
	if id, stream, err = r.start(ctx, o); err != nil {
		return "", stream, r.lost(ctx, "execute command", err)
	}
	if !r.Recorded {
		return id, stream, nil
	}
	pid, err := r.pidOf(ctx, id)
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
	return id, stream, nil
}

// start makes the engine start a command. It waits while a process of this program has frozen the container. It also waits a moment
// longer: the engine learns late from the runtime that the container goes on, and refuses commands until then.
func (r *Container) start(ctx context.Context, o container.ExecOptions) (id string, stream types.HijackedResponse, err error) {
	for begun := time.Now(); ; time.Sleep(pauseAgain) {
		id, stream, err = r.startOnce(ctx, o)
		if !dialect.NotNow(err) || ctx.Err() != nil || r.ended(ctx) {
			return id, stream, err
		}
		took := time.Since(begun)
		if took > dialect.KillPatience && (took > dialect.StartPatience || !r.isFrozen()) {
			return id, stream, err
		}
	}
}

func (r *Container) startOnce(ctx context.Context, o container.ExecOptions) (id string, stream types.HijackedResponse, err error) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	c, err := r.ContainerExecCreate(bounded, r.ID, o)
	if err != nil {
		return "", stream, err
	}
	stream, err = r.ContainerExecAttach(ctx, c.ID, container.ExecAttachOptions{Tty: o.Tty})
	return c.ID, stream, err
}

// unrecorded returns the error for a command whose programs cannot be recorded, with the reason.
func (r *Container) unrecorded(ctx context.Context, reason error) error {
	if !errors.Is(reason, containers.ErrEnded) {
		return fmt.Errorf("record programs: %w", reason)
	}
	if c, err := r.Inspect(ctx, r.ID); err == nil && Runs(&c) && c.State.Pid != 0 && c.State.Pid != containers.First(r.HostDir) {
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
