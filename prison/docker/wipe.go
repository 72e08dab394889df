package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/hosttree"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// Wipe implements [prison.Backend].
func (b *Backend) Wipe(ctx context.Context, s prison.Spec) error {
	r, e, c, err := b.own(ctx, s)
	if err != nil {
		return err
	}
	if r == nil {
		return b.wipeWorkspace(ctx, s, nil)
	}
	if inside.Runs(c) {
		return errRunning
	}
	// A process that had made such a container may have been killed, and the container could still write into the workspace.
	if err := e.removeAll(ctx, r.Key, roleLook); err != nil {
		return err
	}
	// The other containers are removed last: their image exists as long as one of them does, and emptying the workspace needs the image.
	if err := b.wipeWorkspace(ctx, s, r); err != nil {
		return err
	}
	if err := errors.Join(e.removeEverything(ctx, r), r.endLeft(ctx, s)); err != nil {
		return err
	}
	return forget(s.Dir)
}

// removeEverything removes all objects of a prison on the engine.
func (e *engine) removeEverything(ctx context.Context, r *state) error {
	if err := e.removeAll(ctx, r.Key, ""); err != nil {
		return err
	}
	for _, v := range []string{r.homeVolume(), r.etcVolume()} {
		if err := e.removeVolume(ctx, v, r.Key, ""); err != nil {
			return err
		}
	}
	return nil
}

// wipeWorkspace removes the workspace. Only root can open the phantom's folders, so for other users a container empties them first.
func (b *Backend) wipeWorkspace(ctx context.Context, s prison.Spec, r *state) error {
	if os.Geteuid() == 0 || os.Remove(s.Workspace) == nil {
		return hosttree.Remove(s.Workspace)
	}
	if _, err := os.Lstat(s.Workspace); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	if r == nil { // the helper must have a key, also without a state
		r = newState(e.Host)
	}
	if err := e.empty(ctx, cmp.Or(r.Image, s.Image), r.Key, s); err != nil {
		return err
	}
	if err := os.Remove(s.Workspace); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}

// removeAll removes the containers with a key, for one role or for all roles.
func (e *engine) removeAll(ctx context.Context, key, role string) error {
	f := filters.NewArgs(filters.Arg("label", labelKey+"="+key))
	if role != "" {
		f.Add("label", labelRole+"="+role)
	}
	list, err := e.Containers(ctx, container.ListOptions{All: true, Filters: f})
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := e.Remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// removeVolume removes a volume of a prison. If a container that uses the volume is being removed, it waits a moment. After a start was
// killed, the engine may still create a container that uses the volume: removeVolume removes containers of the given role, as
// [engine.removeAll] does.
func (e *engine) removeVolume(ctx context.Context, name, key, role string) error {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := e.VolumeRemove(bounded, name, false)
		if err == nil || dialect.Gone(err) {
			return nil
		}
		if !dialect.NotNow(err) || time.Now().After(deadline) {
			return e.Failed(ctx, "remove volume", err)
		}
		if err := e.removeAll(ctx, key, role); err != nil {
			return err
		}
	}
}
