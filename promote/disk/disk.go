// Package disk reports whether the file systems of a repository can take more.
package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// floor is the free space in bytes below which an error counts as a full disk.
const floor = 4 << 20

// space is the free space of a file system.
type space struct{ free, inodes, inodesFree int64 } // bytes, and numbers of inodes

// spaceAt returns the free space of the file system of path.
func spaceAt(path string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	return space{free: int64(s.Bavail) * int64(s.Bsize), inodes: int64(s.Files), inodesFree: int64(s.Ffree)}, nil //nolint:unconvert // the types differ between systems
}

// Full reports whether the file system of path is full.
func Full(path string) bool {
	r, err := spaceAt(path)
	return err == nil && r.free < floor
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

// fewInodes is the number of free inodes that counts as none: temporary files need some.
const fewInodes = 16

// FullHold returns the hold for the full file system of an airlock's host state dir, whose repository is at commonDir. cause is the error
// that it led to, or nil.
func FullHold(dir, commonDir string, cause error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.DiskFull, Message: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(commonDir)}}
	if r, err := spaceAt(dir); errors.Is(cause, unix.EDQUOT) {
		h.Message, h.Next = "the disk quota is used up", []string{"quota -s"}
	} else if err == nil && r.inodes > 0 && r.inodesFree < fewInodes {
		h.Message = "no inode left on the device of the repository: it has too many files"
		h.Next = []string{"df -i " + gitops.Pasteable(commonDir)}
	}
	if cause != nil {
		h.Message += ": " + gitops.Text(cause.Error()).String()
	}
	return h
}

// InodesHold returns the hold for a workspace on a disk without free inodes, or nil. The process that stopped the prison may have been
// unable to write the hold.
func InodesHold(workspace string) *ledger.Hold {
	s, err := spaceAt(workspace)
	if err != nil || s.inodes == 0 || s.inodesFree >= s.inodes/100 {
		return nil
	}
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: fmt.Sprintf("the disk has room for %d more files; the prison is not left running", s.inodesFree),
		Next: []string{"df -i " + gitops.Pasteable(workspace), "git airlock start"}}
}
