package docker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/watch/containers"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	volumes "github.com/docker/docker/api/types/volume"
)

// SweepOrphaned removes the objects of prisons whose workspace and state were removed while they ran. No stop or clear
// will ever remove these objects.
func (b *Backend) SweepOrphaned(ctx context.Context) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	return e.sweepOrphaned(ctx)
}

func (e *engine) sweepOrphaned(ctx context.Context) error {
	list, err := e.Containers(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelRole+"="+rolePrison))})
	if err != nil {
		return err
	}
	for _, c := range list {
		if !isOurs(c.Labels) || !e.orphaned(ctx, c) {
			continue
		}
		if err := e.removeEverything(ctx, &state{Key: c.Labels[labelKey]}); err != nil {
			return err
		}
	}
	return nil
}

// RemoveUnrecorded removes the objects of the prison of an airlock whose state is gone. The id is in a label of its container. Another
// repository can have an airlock with the same id, but not with the same workspace. A machine without an engine has no container.
func (b *Backend) RemoveUnrecorded(ctx context.Context, id, workspace string) error {
	e, err := b.engine(ctx, nil)
	if none, ok := errors.AsType[*prison.Unavailable](err); ok && !none.Silent {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := e.Containers(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", labelRole+"="+rolePrison), filters.Arg("label", labelID+"="+id))})
	for _, c := range list {
		of := func(m container.MountPoint) bool { return m.Destination == prison.Workspace && m.Source == workspace }
		if isOurs(c.Labels) && slices.ContainsFunc(c.Mounts, of) {
			err = errors.Join(err, e.removeEverything(ctx, &state{Key: c.Labels[labelKey]}))
		}
	}
	return err
}

// orphanedScript prints whether the mounted folder was removed. It does not count as removed if it was only moved. A runtime's own kernel
// does not show that in mountinfo, so for such a runtime the script prints the owner of the folder.
const orphanedScript = `while read -r _ _ _ _root _at _; do
	case $_root:$_at in *//deleted:"$1") echo removed; exit ;; esac
done </proc/self/mountinfo
exec stat -c %u:%g "$1"`

// orphaned reports whether the workspace of a running container was removed. A missing path alone does not prove that: the repository may
// have been moved, or have another path in this process. A process inside can make the folder look removed only by removing its content.
func (e *engine) orphaned(ctx context.Context, c container.Summary) bool {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	full, err := e.ContainerInspect(bounded, c.ID)
	if err != nil || !inside.Runs(&full) || full.State.Paused {
		return false
	}
	for _, m := range full.Mounts {
		if _, err := os.Lstat(m.Source); m.Destination == prison.Workspace && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	if !containers.Runs(full.ID, full.State.Pid) {
		var stop context.CancelFunc
		bounded, stop = context.WithTimeout(bounded, unseenPatience)
		defer stop()
	}
	said, err := e.ask(bounded, c.ID, "0:0", orphanedScript)
	if err != nil || said == "removed" {
		return err == nil
	}
	if !dialect.OwnKernel(full.HostConfig.Runtime) || full.HostConfig.Runtime == "" {
		return false
	}
	left, err := e.ask(bounded, c.ID, said, `exec ls -A "$1"`)
	return err == nil && left == ""
}

// unseenPatience limits a command in a container whose first process this kernel does not show. The container may run on another kernel,
// or it has ended: if conmon is killed, Podman reports for ever that its container runs.
const unseenPatience = 2 * time.Second

// ask runs a script about the workspace in a container, and returns its output.
func (e *engine) ask(ctx context.Context, id, user, script string) (string, error) {
	var said bytes.Buffer
	box := &inside.Container{Engine: e.Engine, ID: id, User: user}
	status, err := box.Exec(ctx, prison.Process{Argv: []string{inside.Shell, "-c", script, "sh", prison.Workspace}, Dir: "/", Stdout: &said})
	if err == nil && status != 0 {
		err = errors.New("the script failed")
	}
	return strings.TrimSpace(said.String()), err
}

// sweep removes containers and volumes that the engine created after the command that asked for them was killed. When the prison was
// removed, they did not exist yet. An agent's container is not in danger: it is started as soon as it is created, and the next start
// replaces one that was not started.
func (e *engine) sweep(ctx context.Context) error {
	list, err := e.Containers(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", labelRole), filters.Arg("status", "created"), filters.Arg("status", "exited"))})
	if err != nil {
		return err
	}
	for _, c := range list {
		if leftOver(c) {
			if err := e.abandon(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOver reports whether a container that does not run was left by a command that was killed.
func leftOver(c container.Summary) bool {
	old := time.Since(time.Unix(c.Created, 0)) > dialect.SweepAge
	return old && isOurs(c.Labels) && (c.State == container.StateCreated || c.Labels[labelRole] != rolePrison)
}

// abandon removes a container that no state names. If the container never ran, the volumes that were created with it never had any
// content, and abandon removes them, too. The home of a stopped prison was created with another container.
func (e *engine) abandon(ctx context.Context, c container.Summary) error {
	made := c.Labels[labelMade]
	if err := e.Remove(ctx, c.ID); err != nil || made == "" || c.State != container.StateCreated {
		return err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	list, err := e.VolumeList(bounded, volumes.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelMade+"="+made))})
	if err != nil {
		return e.Failed(ctx, "list volumes", err)
	}
	for _, v := range list.Volumes {
		if err := e.VolumeRemove(bounded, v.Name, false); err != nil && !dialect.Gone(err) && !dialect.NotNow(err) {
			return e.Failed(ctx, "remove volume", err)
		}
	}
	return nil
}
