package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// lockName is the file of the host state that a daemon locks for its life.
const lockName = "daemon.lock"

// ErrElsewhere reports that this process cannot see the daemon of an airlock: it runs in another container, or on
// another host that shares the repository's disk.
var ErrElsewhere = errors.New("the daemon runs in another container or on another host")

// ErrMoved reports that the host state or the worktree of an airlock is no longer where it was.
var ErrMoved = errors.New("the worktree is not where it was")

const (
	// stopTime is the time that a process has to end its cycle.
	stopTime = 20 * time.Second
	killTime = 5 * time.Second
)

// Stop ends the daemon of an airlock, if one is running, and returns when the process has ended. The daemon breaks its cycle off between two
// steps. Stop kills a daemon that does not react, and the next cycle then recovers from the journal. When ctx ends, Stop kills the daemon at
// once, so that an interruption leaves nothing half stopped.
func Stop(ctx context.Context, store airlock.Store, id string) error {
	_, err := lock{store, id, lockName}.end(ctx, "stop the daemon")
	return err
}

// EndCycle ends, in the same way, another command whose cycle holds the airlock's cycle lock. It returns the process id
// of that command, or 0 if there is none.
func EndCycle(ctx context.Context, store airlock.Store, id string) (pid int, err error) {
	return lock{store, id, promote.CycleLock}.end(ctx, "end the cycle")
}

// EndCheck ends the command that runs a check for an airlock, in the same way.
func EndCheck(ctx context.Context, store airlock.Store, id string) error {
	_, err := lock{store, id, airlock.CheckLock}.end(ctx, "end the check")
	return err
}

// lock is a lock of an airlock.
type lock struct {
	store    airlock.Store
	id, name string // of the airlock, and of the lock's file in the host state
}

func (l lock) file() string { return filepath.Join(l.store.Dir(l.id), l.name) }

// end is endHolder with an error that names what the caller does.
func (l lock) end(ctx context.Context, step string) (pid int, err error) {
	if pid, err = l.endHolder(ctx); err != nil {
		err = fmt.Errorf("%s of airlock %s: %w", step, l.id, err)
	}
	return pid, err
}

// endHolder ends the process that holds the lock. It returns its process id, or 0 if none holds the lock.
func (l lock) endHolder(ctx context.Context) (pid int, err error) {
	for range holders {
		asked, ended, err := l.signalHolder(ctx, 0, syscall.SIGTERM, stopTime)
		pid = cmp.Or(pid, asked)
		if err != nil || ended {
			return pid, err
		}
		killed, ended, err := l.signalHolder(context.WithoutCancel(ctx), asked, syscall.SIGKILL, killTime)
		if err != nil || ended {
			return pid, err
		}
		if killed == asked {
			return pid, fmt.Errorf("process %d does not end", pid)
		}
	}
	return pid, errors.New("another process holds the lock each time")
}

// holders bounds the number of processes that endHolder ends. Another process can take the lock each time.
const holders = 3

// signalHolder signals the process that holds the lock, and no other process. If only is not 0, it signals only a holder with that process
// id. It reports whether the process ended in time. It waits for the end of the process, and not for the release of the lock, after which
// the process has more to close.
func (l lock) signalHolder(ctx context.Context, only int, signal syscall.Signal, within time.Duration) (pid int, ended bool, err error) {
	pid, err = l.holder()
	if err != nil || pid == 0 {
		return 0, err == nil, err
	}
	if only != 0 && pid != only { // another process, which nobody has asked to end
		return pid, false, nil
	}
	p, err := openProcess(pid)
	if err != nil {
		return pid, false, fmt.Errorf("find process %d: %w", pid, err)
	}
	defer p.close()
	if still, err := l.holder(); err != nil || still != pid {
		return pid, still == 0, err
	}
	if err := p.signal(signal); err != nil {
		return pid, false, fmt.Errorf("signal process %d: %w", pid, err)
	}
	begun := time.Now()
	for waited := time.Duration(0); waited < within && ctx.Err() == nil && !ended && err == nil; waited = time.Since(begun) {
		if l.store.Wait(l.file(), waited) != nil {
			break // a stopped process does not react to any signal but SIGKILL
		}
		ended, err = p.ended(endPoll)
	}
	if err != nil {
		err = fmt.Errorf("wait for process %d: %w", pid, err)
	}
	return pid, ended, err
}

// endPoll bounds one wait for the process to end.
const endPoll = 50 * time.Millisecond

// PID returns the process id of the daemon of an airlock, or 0 if no daemon is running. The lock shows whether a daemon is running, and the
// locked file contains its process id. If no process here has that id and the file open, PID returns [ErrElsewhere].
func PID(store airlock.Store, id string) (int, error) { return lock{store, id, lockName}.holder() }

// holder returns the process id of the holder of the lock, or 0 if the lock is free.
func (l lock) holder() (int, error) {
	file := l.file()
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Lstat(l.store.Dir(l.id)); err == nil {
			return 0, nil // nobody has ever locked it, and a full disk may have no room for the file that the lock below would create
		}
	}
	said, before := "", 0
	for range 20 {
		unlock, err := l.store.TryLockFile(l.id, l.name)
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
		// A daemon that has just started has not written its process id yet, and the id in the file may already
		// belong to another process. Other processes that check the lock hold it only for an instant.
		pid := lockHolder(file)
		if pid != 0 && pid == before {
			return pid, nil
		}
		before = pid
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("%w: %q holds %q, and is none of the processes here", ErrElsewhere, gitops.Text(said), file)
}
