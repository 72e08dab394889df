//go:build !linux

package daemon

import (
	"errors"
	"syscall"
	"time"
)

// process is a process id, on systems without pidfds. The daemon's lock is checked right before the signal, so that
// the process id can be reused only within an instant.
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

// ended waits up to within for the process to end.
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

// holds cannot check which files a process has open here, and trusts the process id in the file.
func holds(pid int, _ string) bool { return pid > 0 }

func lockHolder(string) int { return 0 }

func holderOf(string) Holder { return Holder{} }

// KeepDescriptors closes the caller's descriptors, except the standard streams, in processes that this one starts. A daemon that
// outlives this process would otherwise hold a lock of the caller, or the pipe with which another process waits for the end of
// this one.
func KeepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}
