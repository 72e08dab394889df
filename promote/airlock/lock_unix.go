package airlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy says that another command of the program is at work on the same thing.
var ErrBusy = errors.New("another git airlock command is at work here")

// Lock lets one command at a time start, stop or clear airlocks of the repository. The lock is
// one of flock(2) on the repository's git directory itself: it leaves nothing behind.
func (s Store) Lock(ctx context.Context) (unlock func(), err error) {
	return lock(ctx, s.repo.CommonDir, os.O_RDONLY, unix.LOCK_EX)
}

// TryLock is Lock for those who will not wait: [ErrBusy].
func (s Store) TryLock() (unlock func(), err error) {
	return s.Lock(atOnce)
}

// atOnce is the patience of those who will not wait.
var atOnce, _ = context.WithDeadline(context.Background(), time.Unix(0, 0)) // it has ended

// LockFile locks a file of an airlock's host state, making it if necessary. It waits until ctx times out: [ErrBusy]. Where
// nothing can be written, a file that is there is locked all the same: one may look.
func (s Store) LockFile(ctx context.Context, id, name string) (unlock func(), err error) {
	unlock, err = lock(ctx, s.Dir(id)+"/"+name, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
		return lock(ctx, s.Dir(id)+"/"+name, os.O_RDONLY, unix.LOCK_EX)
	}
	return unlock, err
}

// lock polls, since flock(2) knows no deadline.
func lock(ctx context.Context, path string, flags, how int) (func(), error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, ErrBusy
		case <-time.After(2 * time.Millisecond):
		}
	}
}
