package gitops

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitMemory limits the memory that a process may allocate: its heap and its private mappings, see getrlimit(2).
// Packs that are mapped for reading do not count. It ignores the error for a process that has ended.
func limitMemory(pid int, bytes int64) {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil)
}

// identityOf returns a string that distinguishes a folder from every other, including its copies, and that stays the same when the folder is moved
// within its file system. The number of the device is not included, since it may change at a reboot.
func identityOf(dir string) string {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
