package promote

import (
	"context"
	"fmt"
	"syscall"
	"time"

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
		signal syscall.Signal
		within time.Duration
	}{{syscall.SIGTERM, stopTime}, {syscall.SIGKILL, killTime}} {
		ended, err := signalDaemon(ctx, store, id, try.signal, try.within)
		if err != nil || ended {
			return err
		}
	}
	return fmt.Errorf("the daemon of airlock %s does not end", id)
}

// signalDaemon signals the process that holds the lock and no other. It tells whether the process has
// ended by the deadline; that it lets go of the lock is not enough, since it has more to close.
func signalDaemon(ctx context.Context, store airlock.Store, id string, signal syscall.Signal, within time.Duration) (ended bool, err error) {
	pid, err := DaemonPID(store, id)
	if err != nil || pid == 0 {
		return err == nil, err
	}
	p, err := openProcess(pid)
	if err != nil {
		return false, fmt.Errorf("find the daemon %d: %w", pid, err)
	}
	defer p.close()
	if still, err := DaemonPID(store, id); err != nil || still != pid {
		return still == 0, err
	}
	if err := p.signal(signal); err != nil {
		return false, fmt.Errorf("signal the daemon %d: %w", pid, err)
	}
	for end := time.Now().Add(within); time.Now().Before(end); {
		ended, err := p.ended(endPoll)
		if err != nil {
			return false, fmt.Errorf("wait for the daemon %d: %w", pid, err)
		}
		if ended || ctx.Err() != nil {
			return ended, ctx.Err()
		}
	}
	return false, nil
}

// endPoll is how long one look at whether a process has ended may take.
const endPoll = 50 * time.Millisecond
