// Package disk reports whether the file systems of a repository can take more.
package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// floor is the free space in bytes below which an error counts as a full disk.
const floor = 4 << 20

// Space is the free space of a file system.
type Space struct{ Free, Inodes, InodesFree int64 } // bytes, and numbers of inodes

// SpaceAt returns the free space of the file system of path.
func SpaceAt(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, err
	}
	return Space{Free: int64(s.Bavail) * int64(s.Bsize), Inodes: int64(s.Files), InodesFree: int64(s.Ffree)}, nil //nolint:unconvert // the types differ between systems
}

// Full reports whether the file system of path is full.
func Full(path string) bool {
	r, err := SpaceAt(path)
	return err == nil && r.Free < floor
}

// UnwritableError reports that a directory to which a landing must write is not writable.
type UnwritableError struct {
	Path  string
	cause error
}

// CheckWritable returns an [UnwritableError] if one of the directories is not writable.
func CheckWritable(dirs ...string) error {
	for _, dir := range dirs {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EIO) {
			return &UnwritableError{dir, err}
		}
	}
	return nil
}

// Error implements error.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing can be written to %s: %s", gitops.Text(e.Path), e.cause)
}

// Unwrap returns the cause, a [syscall.Errno].
func (e *UnwritableError) Unwrap() error { return e.cause }

// Next returns commands that show the reason.
func (e *UnwritableError) Next() []string {
	if errors.Is(e.cause, unix.EROFS) {
		return []string{"findmnt --target " + gitops.Pasteable(e.Path)}
	}
	return []string{"ls -ld " + gitops.Pasteable(e.Path)}
}
