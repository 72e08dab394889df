//go:build !linux

package daemon

import (
	"errors"
	"syscall"
	"time"
)

// process is known by its number where there are no pidfds. The daemon's lock is looked at right before the signal,
// which leaves the number an instant to change its owner.
type process struct{ pid int }

func openProcess(pid int) (process, error) { return process{pid}, nil }

func (p process) close() {}

// signal signals the process, if it has not ended.
func (p process) signal(s syscall.Signal) error {
	if err := syscall.Kill(p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// ended waits a while for the process to end.
func (p process) ended(within time.Duration) (bool, error) {
	err := syscall.Kill(p.pid, 0)
	if err == nil {
		time.Sleep(within)
		return false, nil
	}
	if errors.Is(err, syscall.ESRCH) {
		return true, nil
	}
	return false, err
}

// holds takes the word of whoever wrote the number.
func holds(pid int, _ string) bool { return pid > 0 }

func lockHolder(string) int { return 0 }
