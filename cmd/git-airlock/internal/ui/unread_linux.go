package ui

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// UntilUnread waits until the reader of a pipe or socket has gone, and returns true. It returns false at once if f is another kind
// of file.
func UntilUnread(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return false // a terminal sends a signal when it closes, and files have no reader
	}
	end := []unix.PollFd{{Fd: int32(f.Fd())}} // POLLERR and POLLHUP are always reported, poll(2)
	for {
		_, err := unix.Poll(end, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && end[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
