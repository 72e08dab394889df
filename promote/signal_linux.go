package promote

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a pidfd (pidfd_open(2)): it keeps the process's number from being given to somebody else between a
// look and a signal. -1 stands for a process that has ended.
type process struct{ fd int }

func openProcess(pid int) (process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return process{-1}, nil
	}
	return process{fd}, err
}

func (p process) close() { _ = unix.Close(p.fd) }

// signal signals the process, if it has not ended.
func (p process) signal(s syscall.Signal) error {
	if p.fd < 0 {
		return nil
	}
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// ended waits a while for the process to end, which makes its descriptor readable.
func (p process) ended(within time.Duration) (bool, error) {
	if p.fd < 0 {
		return true, nil
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return n > 0, err
}
