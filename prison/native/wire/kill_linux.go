package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// KillListener kills the process that listens on the socket in dir, even if the process is stopped. See [Listen].
func KillListener(dir string) error {
	pid, err := listener(dir)
	if err != nil {
		return err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	// If the same process still listens, its number belonged to it when the descriptor was opened.
	if again, err := listener(dir); err != nil || again != pid {
		return err
	}
	return unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0)
}

// listener returns the process that listens on the socket in dir, see SO_PEERCRED in unix(7).
func listener(dir string) (pid int, err error) {
	c, err := Dial(dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	if peer.Pid <= 0 {
		return 0, errors.New("the socket's process is not visible here")
	}
	return int(peer.Pid), nil
}

// AwaitEnd waits until the process of a pidfd has ended.
func AwaitEnd(pidfd int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
		if err != unix.EINTR {
			return
		}
	}
}

// HasEnded reports whether the process of a pidfd has ended, even if its parent has not waited for it (pidfd_open(2)).
func HasEnded(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
	return err == nil && n > 0
}
