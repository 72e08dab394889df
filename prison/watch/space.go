package watch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeFloor is how many bytes of a file system stay free, or a twentieth of it, or half of what was free at first.
const freeFloor = 1 << 30

// space is what file systems hold and have left.
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

// crowded reports whether only a few more files fit.
func (s space) crowded() bool { return s.inodes > 0 && s.inodesFree < s.inodes/100 }

// floor returns how much of a disk stays free that has this space at first.
func (s space) floor() int64 { return min(freeFloor, s.total/20, s.free/2) }

// with adds what is used of another disk. What is free stays that of the first.
func (s space) with(beside space) space {
	s.used, s.inodesUsed = s.used+beside.used, s.inodesUsed+beside.inodesUsed
	return s
}

func sameDisk(a, b string) bool {
	var first, second unix.Stat_t
	return unix.Stat(a, &first) == nil && unix.Stat(b, &second) == nil && first.Dev == second.Dev
}

// disk is a file system beside the workspace's, of which some bytes stay free.
type disk struct {
	Folder
	floor int64
	last  space // when it was asked last
}

// full returns why a disk with this space is full; empty if it is not.
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
