package ui

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// UntilUnread returns once nobody reads any more what goes to a pipe or a socket, and reports whether that can be seen at all.
func UntilUnread(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return false // the end of a terminal comes as a signal, and files have no reader
	}
	end := []unix.PollFd{{Fd: int32(f.Fd())}} // POLLERR and POLLHUP are always told, poll(2)
	for {
		_, err := unix.Poll(end, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && end[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
