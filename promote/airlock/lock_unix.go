package airlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy reports that another command of the program holds the lock.
var ErrBusy = errors.New("another git airlock command is at work here")

// Lock lets one command at a time start, stop or clear airlocks of the repository. It uses flock(2) on the
// repository's git directory itself, so that it leaves no lock file behind.
func (s Store) Lock(ctx context.Context) (unlock func(), err error) {
	return lock(ctx, s.repo.CommonDir, os.O_RDONLY, unix.LOCK_EX)
}

// TryLock is like Lock, but returns [ErrBusy] instead of waiting.
func (s Store) TryLock() (unlock func(), err error) {
	return s.Lock(atOnce)
}

// atOnce is a context whose deadline has passed: lock tries once.
var atOnce, _ = context.WithDeadline(context.Background(), time.Unix(0, 0)) // never canceled: the deadline has passed

// LockFile locks a file of an airlock's host state, and creates it if necessary. It waits until ctx ends, and returns
// [ErrBusy] if its deadline passed. If nothing can be written, it locks an existing file all the same, so that
// read-only commands work.
func (s Store) LockFile(ctx context.Context, id, name string) (unlock func(), err error) {
	unlock, err = lock(ctx, s.Dir(id)+"/"+name, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
		return lock(ctx, s.Dir(id)+"/"+name, os.O_RDONLY, unix.LOCK_EX)
	}
	return unlock, err
}

// lock polls, because flock(2) has no timeout.
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
