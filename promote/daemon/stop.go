package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// lockName is the file of the host state that a daemon locks for its life.
const lockName = "daemon.lock"

// ErrElsewhere says that the daemon of an airlock lives where this process cannot see it: in another container, or on
// another host that has the repository's disk.
var ErrElsewhere = errors.New("the daemon runs in another container or on another host")

// ErrMoved says that the host state or the worktree of an airlock is not where it was.
var ErrMoved = errors.New("the worktree is not where it was")

const (
	// stopTime is how long a daemon may take to end a cycle.
	stopTime = 20 * time.Second
	killTime = 5 * time.Second
)

// Stop ends the daemon of an airlock, if one runs, and returns when it has ended. The cycle it is at
// is broken off between two of its steps; a daemon that does not answer is killed, and its journal
// is for the next cycle.
func Stop(ctx context.Context, store airlock.Store, id string) error {
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

// signalDaemon signals the process that holds the lock and no other. It reports whether the process has
// ended by the deadline; that it lets go of the lock is not enough, since it has more to close.
func signalDaemon(ctx context.Context, store airlock.Store, id string, signal syscall.Signal, within time.Duration) (ended bool, err error) {
	pid, err := PID(store, id)
	if err != nil || pid == 0 {
		return err == nil, err
	}
	p, err := openProcess(pid)
	if err != nil {
		return false, fmt.Errorf("find the daemon %d: %w", pid, err)
	}
	defer p.close()
	if still, err := PID(store, id); err != nil || still != pid {
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

// PID returns the process id of the daemon of an airlock, 0 if none runs. The lock is the truth, the number in it a
// help: without a process of that number, [ErrElsewhere].
func PID(store airlock.Store, id string) (int, error) {
	file := filepath.Join(store.Dir(id), lockName)
	none, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	said, before := "", 0
	for range 20 {
		unlock, err := store.LockFile(none, id, lockName)
		if err == nil {
			unlock()
			return 0, nil
		}
		if !errors.Is(err, airlock.ErrBusy) {
			return 0, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		said = strings.TrimSpace(string(content))
		if pid, err := strconv.Atoi(said); err == nil && holds(pid, file) {
			return pid, nil
		}
		// A daemon that has just begun has not written its number yet, and the one that is there may be anybody's by now.
		// Others who ask hold the lock for an instant only.
		pid := lockHolder(file)
		if pid != 0 && pid == before {
			return pid, nil
		}
		before = pid
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("%w: %q holds %q, and is none of the processes here", ErrElsewhere, gitops.Escape(said), file)
}
