package watch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeFloor is the number of bytes of a file system that must stay free, unless a twentieth of its size, or half of the bytes that were
// free at first, is less.
const freeFloor = 1 << 30

// space is the used and free space of file systems, in bytes and inodes.
type space struct{ used, free, total, inodesUsed, inodesFree, inodes int64 }

func spaceAt(path string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	size := int64(s.Bsize) //nolint:unconvert // the types differ between systems
	return space{used: int64(s.Blocks-s.Bfree) * size, free: int64(s.Bavail) * size, total: int64(s.Blocks) * size,
		inodesUsed: int64(s.Files - s.Ffree), inodesFree: int64(s.Ffree), inodes: int64(s.Files)}, nil
}

// crowded reports whether less than a hundredth of the inodes is free.
func (s space) crowded() bool { return s.inodes > 0 && s.inodesFree < s.inodes/100 }

// floor returns the number of bytes that must stay free on a disk with this space at first.
func (s space) floor() int64 { return min(freeFloor, s.total/20, s.free/2) }

// with adds the used space of another disk. The free space stays that of the first disk.
func (s space) with(beside space) space {
	s.used, s.inodesUsed = s.used+beside.used, s.inodesUsed+beside.inodesUsed
	return s
}

func sameDisk(a, b string) bool {
	var first, second unix.Stat_t
	return unix.Stat(a, &first) == nil && unix.Stat(b, &second) == nil && first.Dev == second.Dev
}

// disk is a file system other than the workspace's, with the number of bytes that must stay free.
type disk struct {
	Folder
	floor int64
	last  space // its space at the last check
}

// full returns the reason why a disk with this space is full, or empty.
func (d disk) full(s space) string {
	switch {
	case s.free < d.floor:
		return fmt.Sprintf("the disk of %s has %s left", d.Of, megabytes(s.free))
	case s.crowded():
		return fmt.Sprintf("the disk of %s has room for %d more files", d.Of, s.inodesFree)
	}
	return ""
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
