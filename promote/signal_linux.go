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
		if err := signalDaemon(store, id, try.signal); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, try.within)
		unlock, err := store.LockFile(waiting, id, daemonLock)
		cancel()
		if err == nil {
			unlock()
			return nil
		}
		if !errors.Is(err, airlock.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the daemon of airlock %s does not end", id)
}

// signalDaemon signals the process that holds the lock and no other: the descriptor keeps its number from
// being given to somebody else between the look and the signal (pidfd_open(2)).
func signalDaemon(store airlock.Store, id string, signal unix.Signal) error {
	pid, err := DaemonPID(store, id)
	if err != nil || pid == 0 {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the daemon %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if still, err := DaemonPID(store, id); err != nil || still != pid {
		return err
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal the daemon %d: %w", pid, err)
	}
	return nil
}
