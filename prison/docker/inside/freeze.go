package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

// frozenName is a file in the prison's folder on the host. Whoever has frozen the container holds a lock of it.
const frozenName = "frozen.lock"

// lockFrozen locks the file. It returns nil if another process has the lock.
func lockFrozen(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, frozenName), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	return f, nil
}

// Freeze implements [prison.Freezer] with the engine's pause. If this process dies, [Container.ThawAbandoned] lets the container go
// on.
func (r *Container) Freeze(ctx context.Context) (thaw func() error, err error) {
	lock, err := lockFrozen(r.HostDir, os.O_RDWR|os.O_CREATE)
	if err != nil || lock == nil {
		return nil, errors.Join(fmt.Errorf("freeze the container: %w", prison.ErrFrozen), err)
	}
	unpause := func() error {
		bounded, cancel := dialect.Call(context.WithoutCancel(ctx))
		defer cancel()
		return r.ContainerUnpause(bounded, r.ID)
	}
	if err := r.pause(ctx); err != nil {
		_ = unpause() // in case that only the answer was lost
		return nil, errors.Join(err, os.Remove(lock.Name()), lock.Close())
	}
	return func() error {
		if err := unpause(); err != nil && !dialect.NotNow(err) && !dialect.Gone(err) {
			return errors.Join(r.Failed(ctx, "unpause container", err), lock.Close())
		}
		return errors.Join(os.Remove(lock.Name()), lock.Close())
	}, nil
}

const (
	// pausePatience is how long a container may take to pause. On version 1 of control groups, the runtime gives up early if
	// processes start all the time.
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

// ThawAbandoned lets a paused container go on if a process that died had frozen it. It reports whether it did.
func (r *Container) ThawAbandoned(ctx context.Context) (bool, error) {
	lock, err := lockFrozen(r.HostDir, os.O_RDWR)
	if err != nil || lock == nil {
		return false, nil //nolint:nilerr // another program has paused it, or it is frozen now
	}
	defer lock.Close()
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	if err := r.ContainerUnpause(bounded, r.ID); err != nil && !dialect.NotNow(err) {
		return false, r.Failed(ctx, "unpause container", err)
	}
	return true, os.Remove(lock.Name())
}
