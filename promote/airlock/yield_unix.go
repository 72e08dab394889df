package airlock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops/ticks"
)

// ErrWanted reports that work was ended because another command waits for the store's lock.
var ErrWanted = errors.New("another git airlock command needs the airlock")

// yieldPoll is the interval at which the holder of the lock checks whether another command waits for it.
const yieldPoll = 50 * time.Millisecond

// Yielding returns a context for work that the agent can make endless, such as git in the workspace, which runs the agent's filters. The
// caller holds the store's lock. The context ends with the cause [ErrWanted] when another command waits for the lock in [Store.Lock]. The
// agent cannot keep the user from a stop or a clear then.
func (s Store) Yielding(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for range ticks.Each(ctx.Done(), yieldPoll) {
			if s.wanted() {
				cancel(ErrWanted)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// want announces that this process waits for the store's lock, until the file is closed. It locks the folder of the airlocks, so that it
// leaves no file behind, and ends with the process. It returns nil if that is not possible now.
func (s Store) want() *os.File {
	f, err := os.Open(s.root())
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil { // the holder is checking
		f.Close()
		return nil
	}
	return f
}

// wanted reports whether another process waits for the store's lock. No process may be started meanwhile: until it executes its program, it
// would have a copy of the open file with our lock, which the next call would take for the lock of a process that waits.
func (s Store) wanted() bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.Open(s.root())
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
