package airlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy reports that another command of the program holds the lock.
var ErrBusy = errors.New("another git airlock command is at work here")

// IsBusy reports whether a lock could not be taken because another process holds it. It releases a lock that was taken.
func IsBusy(unlock func(), err error) bool {
	if err == nil {
		unlock()
	}
	return errors.Is(err, ErrBusy)
}

// Waiting is called about ten times a second while the store waits without a deadline for a lock that another process
// holds, with the locked file and the time so far. Its error ends the wait.
type Waiting func(file string, waited time.Duration) error

// WithWaiting returns the store with a function to call during waits.
func (s Store) WithWaiting(w Waiting) Store {
	s.waiting = w
	return s
}

// Wait calls the function of [Store.WithWaiting]. It is for a caller that waits in a loop of its own.
func (s Store) Wait(file string, waited time.Duration) error {
	if s.waiting == nil {
		return nil
	}
	return s.waiting(file, waited)
}

// Lock lets one command at a time start, stop or clear airlocks of the repository. It uses flock(2) on the
// repository's git directory itself, so that it leaves no lock file behind. While it waits, it ends the work of a holder that yields, see
// [Store.Yielding].
func (s Store) Lock(ctx context.Context) (unlock func(), err error) {
	return s.lock(ctx, s.repo.CommonDir, os.O_RDONLY, unix.LOCK_EX, s.want)
}

// LockAfter is like Lock, but waits until the holder has done its work.
func (s Store) LockAfter(ctx context.Context) (unlock func(), err error) {
	return s.lock(ctx, s.repo.CommonDir, os.O_RDONLY, unix.LOCK_EX, nil)
}

// TryLock is like Lock, but returns [ErrBusy] instead of waiting.
func (s Store) TryLock() (unlock func(), err error) {
	return s.Lock(atOnce)
}

// atOnce is a context whose deadline has passed: lock tries once.
var atOnce, _ = context.WithDeadline(context.Background(), time.Unix(0, 0)) // never canceled: the deadline has passed

// LockFile locks a file of an airlock's host state, and creates the file if necessary. If another process holds the lock, LockFile waits
// until ctx ends, and returns [ErrBusy] if that was the deadline of ctx. If the file cannot be opened for
// writing, it locks the existing file, so that commands that only read work.
func (s Store) LockFile(ctx context.Context, id, name string) (unlock func(), err error) {
	unlock, err = s.lock(ctx, s.Dir(id)+"/"+name, os.O_RDWR|os.O_CREATE, unix.LOCK_EX, nil)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
		existing, missing := s.lock(ctx, s.Dir(id)+"/"+name, os.O_RDONLY, unix.LOCK_EX, nil)
		if !errors.Is(missing, fs.ErrNotExist) {
			return existing, missing
		}
	}
	return unlock, err
}

// TryLockFile is [Store.LockFile] without waiting: it returns [ErrBusy] if another process has the lock.
func (s Store) TryLockFile(id, name string) (unlock func(), err error) {
	return s.LockFile(atOnce, id, name)
}

const (
	lockPoll    = 2 * time.Millisecond
	waitingPoll = 100 * time.Millisecond
)

// lock polls, because flock(2) has no timeout. It calls want, if that is not nil, until it returns a file, which stays open during the wait.
func (s Store) lock(ctx context.Context, path string, flags, how int, want func() *os.File) (func(), error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	var wanted *os.File
	defer func() { wanted.Close() }() // closing nil does nothing
	_, bounded := ctx.Deadline()
	begun := time.Now()
	for told := time.Duration(0); ; {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		if waited := time.Since(begun); !bounded && waited-told > waitingPoll {
			told = waited
			if err := s.Wait(path, waited); err != nil {
				f.Close()
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			f.Close()
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, ErrBusy
		case <-time.After(lockPoll):
		}
		if want != nil && wanted == nil {
			wanted = want()
		}
	}
}
