package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/hosttree"
	"github.com/git-airlock/git-airlock/words"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	images "github.com/docker/docker/api/types/image"
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
	return e.wipe(ctx, cmp.Or(r.Image, s.Image), r.Key, s)
}

// wipe removes the workspace with programs of an image. The image may be gone by now, or have no shell or no rm. Then wipe removes the
// workspace with this program.
func (e *engine) wipe(ctx context.Context, image, key string, s prison.Spec) error {
	err := e.empty(ctx, image, key, s)
	if os.Remove(s.Workspace) == nil {
		return nil
	}
	if !errors.Is(err, errOtherFolder) {
		err = errors.Join(err, e.emptyAlone(ctx, key, s))
	}
	left := os.Remove(s.Workspace)
	if left == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return stays(errors.Join(err, left), s.Workspace)
}

// stays returns the refusal for a workspace that the engine did not empty.
func stays(err error, workspace string) error {
	return dialect.Unavailable(fmt.Sprintf("the workspace belongs to another user, and the engine did not empty it: %v", err),
		"sudo rm -rf "+words.ShellQuote(workspace)+"  # and type the command again")
}

// emptyAlone removes the content of the workspace as [engine.empty] does, but needs nothing of an image: it makes one with this program
// in it. The program is in the image, and not mounted, since the engine may not have the program's path.
func (e *engine) emptyAlone(ctx context.Context, key string, s prison.Spec) (err error) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	archive, err := dialect.Pack([]dialect.Entry{
		{Name: strings.TrimPrefix(inside.EmptyProgram, "/"), Mode: 0o755, Content: string(program)},
		dialect.Folder(strings.TrimPrefix(prison.Workspace, "/"), 0o755, 0, 0),
	})
	if err != nil {
		return err
	}
	name := "workspace-remover:" + strings.ToLower(key)
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	said, err := e.ImageImport(bounded, images.ImportSource{Source: archive, SourceName: "-"}, name, images.ImportOptions{})
	if err != nil {
		return e.Failed(ctx, "import image", err)
	}
	_, err = io.Copy(io.Discard, said) // the image is complete when the answer ends
	said.Close()
	defer func() {
		bounded, cancel := dialect.Call(context.WithoutCancel(ctx))
		defer cancel()
		if _, gone := e.ImageRemove(bounded, name, images.RemoveOptions{Force: true, PruneChildren: true}); gone != nil && !dialect.Gone(gone) {
			err = errors.Join(err, e.Failed(ctx, "remove image", gone))
		}
	}()
	if err != nil {
		return e.Failed(ctx, "import image", err)
	}
	_, err = e.runOnce(ctx, s, emptier(name, key, s, inside.EmptyProgram, prison.Workspace))
	return err
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
