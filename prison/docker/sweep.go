package docker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	volumes "github.com/docker/docker/api/types/volume"
)

// SweepDeserted removes prisons whose workspace somebody has removed while they ran, and their records with it: no stop or clear
// will ever come for them.
func (b *Backend) SweepDeserted(ctx context.Context) error {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	return e.sweepDeserted(ctx)
}

func (e *engine) sweepDeserted(ctx context.Context) error {
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelRole+"="+rolePrison))})
	if err != nil {
		return e.failed(ctx, "list containers", err)
	}
	for _, c := range list {
		if !isOurs(c.Labels) || !e.deserted(ctx, c) {
			continue
		}
		if err := e.removeEverything(ctx, &record{Key: c.Labels[labelKey]}); err != nil {
			return err
		}
	}
	return nil
}

// desertedScript reports whether a folder that is mounted is one that was removed: one that was moved is none. A kernel that is a
// program does not say so of its mounts; there it says whose the folder is.
const desertedScript = `while read -r _ _ _ _root _at _; do
	case $_root:$_at in *//deleted:"$1") echo removed; exit ;; esac
done </proc/self/mountinfo
exec stat -c %u:%g "$1"`

// deserted reports whether the workspace of a running container was removed. Its path alone does not: the repository may have been moved,
// or be seen at another path from here. Nobody inside can make it look so without removing what is in it.
func (e *engine) deserted(ctx context.Context, c container.Summary) bool {
	bounded, cancel := call(ctx)
	defer cancel()
	full, err := e.ContainerInspect(bounded, c.ID)
	if err != nil || !runs(&full) || full.State.Paused {
		return false
	}
	for _, m := range full.Mounts {
		if _, err := os.Lstat(m.Source); m.Destination == prison.Workspace && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	said, err := e.ask(bounded, c.ID, "0:0", desertedScript)
	if err != nil || said == "removed" {
		return err == nil
	}
	if !OwnKernel(full.HostConfig.Runtime) || full.HostConfig.Runtime == "" {
		return false
	}
	left, err := e.ask(bounded, c.ID, said, `exec ls -A "$1"`)
	return err == nil && left == ""
}

// ask runs a script about the workspace in a container.
func (e *engine) ask(ctx context.Context, id, user, script string) (string, error) {
	var said bytes.Buffer
	box := &running{engine: e, id: id, user: user}
	status, err := box.Exec(ctx, prison.Process{Argv: []string{defaultSh, "-c", script, "sh", prison.Workspace}, Dir: "/", Stdout: &said})
	if err == nil && status != 0 {
		err = errors.New("the script failed")
	}
	return strings.TrimSpace(said.String()), err
}

// sweepAge is longer than any helper is of use, and than any container waits for its start.
const sweepAge = 10 * time.Minute

// sweep removes what the engine was still making for a command that was killed, volumes as well: nobody had heard of it when
// the prison was removed. A prison's container starts as soon as it is made; one that has not would be made again.
func (e *engine) sweep(ctx context.Context) error {
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", labelRole), filters.Arg("status", "created"), filters.Arg("status", "exited"))})
	if err != nil {
		return e.failed(ctx, "list containers", err)
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

// leftOver tells of a container that does not run whether it is one of a command that was killed.
func leftOver(c container.Summary) bool {
	old := time.Since(time.Unix(c.Created, 0)) > sweepAge
	return old && isOurs(c.Labels) && (c.State == container.StateCreated || c.Labels[labelRole] != rolePrison)
}

// abandon removes a container that nobody knows of. If it never ran, nor was there ever anything in the volumes that were
// made with it: a home that a stopped prison has was made with another container.
func (e *engine) abandon(ctx context.Context, c container.Summary) error {
	made := c.Labels[labelMade]
	if err := e.remove(ctx, c.ID); err != nil || made == "" || c.State != container.StateCreated {
		return err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.VolumeList(bounded, volumes.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelMade+"="+made))})
	if err != nil {
		return e.failed(ctx, "list volumes", err)
	}
	for _, v := range list.Volumes {
		if err := e.VolumeRemove(bounded, v.Name, false); err != nil && !gone(err) && !notNow(err) {
			return e.failed(ctx, "remove volume", err)
		}
	}
	return nil
}
