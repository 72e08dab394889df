package promote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// stopTime is how long a daemon may take to end a cycle.
	stopTime = 20 * time.Second
	killTime = 5 * time.Second
)

// StopDaemon ends the daemon of an airlock, if one runs, and returns when it has ended. The cycle it is at
// is broken off between two of its steps; a daemon that does not answer is killed, and its journal
// is for the next cycle.
func StopDaemon(ctx context.Context, store airlock.Store, id string) error {
	for _, try := range []struct {
		signal unix.Signal
		within time.Duration
	}{{unix.SIGTERM, stopTime}, {unix.SIGKILL, killTime}} {
		ended, err := signalDaemon(ctx, store, id, try.signal, try.within)
		if err != nil || ended {
			return err
		}
	}
	return fmt.Errorf("the daemon of airlock %s does not end", id)
}

// signalDaemon signals the process that holds the lock and no other: the descriptor keeps its number from
// being given to somebody else between the look and the signal (pidfd_open(2)). It tells whether the process has
// ended by the deadline; that it lets go of the lock is not enough, since it has more to close.
func signalDaemon(ctx context.Context, store airlock.Store, id string, signal unix.Signal, within time.Duration) (ended bool, err error) {
	pid, err := DaemonPID(store, id)
	if err != nil || pid == 0 {
		return err == nil, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the daemon %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if still, err := DaemonPID(store, id); err != nil || still != pid {
		return still == 0, err
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("signal the daemon %d: %w", pid, err)
	}
	return awaitEnd(ctx, fd, within)
}

// awaitEnd waits until the process of a pidfd has ended, which makes it readable.
func awaitEnd(ctx context.Context, pidfd int, within time.Duration) (ended bool, err error) {
	for end := time.Now().Add(within); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("wait for the daemon: %w", err)
		}
		if n > 0 {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}
