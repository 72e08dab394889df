package gitops

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identityOf tells a folder from every other, a copy of it among them, wherever it is moved on its file system. The device is
// not part of it: its number may be another after a reboot.
func identityOf(dir string) string {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
