package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// frozenName is a file in the prison's folder on the host. A process that has frozen the container holds a lock of it.
const frozenName = "frozen.lock"

// lockFrozen locks the file. It returns nil if another process has the lock.
func lockFrozen(dir string, flags int) (*os.File, error) {
	f, err := hostfile.Lock(filepath.Join(dir, frozenName), flags)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return f, err
}

// isFrozen reports whether a process holds the lock.
func (r *Container) isFrozen() bool {
	if r.HostDir == "" {
		return false
	}
	f, err := lockFrozen(r.HostDir, os.O_RDWR)
	if f != nil {
		f.Close()
	}
	return err == nil && f == nil
}

// heldText is the content of the file if the container stays frozen after that process has ended, see [prison.Frozen].
const heldText = "held\n"

func isHeld(lock *os.File) bool {
	content, err := io.ReadAll(io.NewSectionReader(lock, 0, int64(len(heldText))))
	return err == nil && string(content) == heldText
}

// frozen is the lock of a frozen container. It implements [prison.Frozen].
type frozen struct {
	*Container
	ctx  context.Context // does not end with the caller's, since the container must be unpaused
	lock *os.File
}

// Freeze implements [prison.Freezer] with the engine's pause. If this process dies, [Container.Thawed] lets the container go
// on.
func (r *Container) Freeze(ctx context.Context) (prison.Frozen, error) {
	lock, err := lockFrozen(r.HostDir, os.O_RDWR|os.O_CREATE)
	if err != nil || lock == nil {
		return nil, errors.Join(fmt.Errorf("freeze the container: %w", prison.ErrFrozen), err)
	}
	f := frozen{r, context.WithoutCancel(ctx), lock}
	if isHeld(lock) && r.paused(ctx) {
		return f, nil
	}
	if err := r.pause(ctx); err != nil {
		_ = f.unpause() // the engine may have paused the container although its answer was lost
		return nil, errors.Join(err, os.Remove(lock.Name()), lock.Close())
	}
	return f, nil
}

func (r *Container) paused(ctx context.Context) bool {
	c, err := r.Inspect(ctx, r.ID)
	return err == nil && Runs(&c) && c.State.Paused
}

// Hold implements [prison.Frozen].
func (f frozen) Hold() error {
	_, err := f.lock.WriteAt([]byte(heldText), 0)
	return errors.Join(err, f.lock.Sync())
}

func (f frozen) unpause() error {
	bounded, cancel := dialect.Call(f.ctx)
	defer cancel()
	return f.ContainerUnpause(bounded, f.ID)
}

// Leave implements [prison.Frozen].
func (f frozen) Leave() error {
	if !isHeld(f.lock) {
		return f.Thaw()
	}
	return f.lock.Close()
}

// Thaw implements [prison.Frozen].
func (f frozen) Thaw() error {
	if err := f.unpause(); err != nil && !dialect.NotNow(err) && !dialect.Gone(err) {
		return errors.Join(f.Failed(f.ctx, "unpause container", err), f.lock.Close())
	}
	return errors.Join(os.Remove(f.lock.Name()), f.lock.Close())
}

const (
	// pausePatience is how long a container may take to pause. With version 1 of control groups, the runtime fails early if processes
	// start all the time, and pause tries again.
	pausePatience = 10 * time.Second
	pauseAgain    = 20 * time.Millisecond
)

func (r *Container) pause(ctx context.Context) error {
	for begun := time.Now(); ; time.Sleep(pauseAgain) {
		bounded, cancel := dialect.Call(ctx)
		err := r.ContainerPause(bounded, r.ID)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Since(begun) > pausePatience {
			return r.Failed(ctx, "pause container", err)
		}
	}
}

// latePatience is how long an engine may report that a container is paused after it was unpaused.
const latePatience = 3 * time.Second

// Thawed reports whether a caller may use a container that the engine calls paused. If a process that has died had frozen the
// container, Thawed unpauses it. If a process of this program has just unpaused it, Thawed waits until the engine reports that. A held
// container stays frozen, and the result is true, so that the caller can take over with [Container.Freeze]. Otherwise a process of this
// program keeps the container frozen, or another program has paused it.
func (r *Container) Thawed(ctx context.Context) (bool, error) {
	for begun := time.Now(); ; time.Sleep(pauseAgain) {
		if thawed, err := r.thawAbandoned(ctx); thawed || err != nil {
			return thawed, err
		}
		if r.isFrozen() || time.Since(begun) > latePatience {
			return false, ctx.Err()
		}
		if !r.paused(ctx) {
			return true, nil
		}
	}
}

func (r *Container) thawAbandoned(ctx context.Context) (bool, error) {
	lock, err := lockFrozen(r.HostDir, os.O_RDWR)
	if err != nil || lock == nil {
		return false, nil //nolint:nilerr // a process has frozen it now, or another program has paused it
	}
	defer lock.Close()
	if isHeld(lock) {
		return true, nil
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	if err := r.ContainerUnpause(bounded, r.ID); err != nil && !dialect.NotNow(err) {
		return false, r.Failed(ctx, "unpause container", err)
	}
	return true, os.Remove(lock.Name())
}
