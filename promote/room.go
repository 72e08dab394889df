package promote

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// diskFloor is the free space below which a failure is taken for a full disk.
const diskFloor = 4 << 20

// space is what a file system has left.
type space struct{ free, inodes, inodesFree int64 }

func spaceAt(path string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	return space{free: int64(s.Bavail) * int64(s.Bsize), inodes: int64(s.Files), inodesFree: int64(s.Ffree)}, nil //nolint:unconvert // the types differ between systems
}

// DiskFull reports whether the file system that holds path has no room.
func DiskFull(path string) bool {
	r, err := spaceAt(path)
	return err == nil && r.free < diskFloor
}

// UnwritableError reports that nothing can be written where a landing has to write.
type UnwritableError struct {
	Path  string
	cause error
}

// Error implements error.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing can be written to %s: %s", gitops.Escape(e.Path), e.cause)
}

// Unwrap returns the cause, which is a [syscall.Errno].
func (e *UnwritableError) Unwrap() error { return e.cause }

// Next returns the commands that show why.
func (e *UnwritableError) Next() []string {
	if errors.Is(e.cause, unix.EROFS) {
		return []string{"findmnt --target " + gitops.Pasteable(e.Path)}
	}
	return []string{"ls -ld " + gitops.Pasteable(e.Path)}
}

// unwritable returns an [UnwritableError] if nothing can be written where a landing has to write.
func (e *Engine) unwritable() error {
	for _, dir := range []string{e.Dir(), e.Repo.GitDir, e.Repo.CommonDir, filepath.Join(e.Repo.CommonDir, "objects"), filepath.Join(e.Repo.CommonDir, "refs")} {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EIO) {
			return &UnwritableError{dir, err}
		}
	}
	return nil
}

// room is the hold that follows from a full file system, nil if there is room.
func (e *Engine) room() *ledger.Hold {
	if !DiskFull(e.Dir()) {
		return nil
	}
	h := e.diskFull(nil)
	return &h
}

// fewInodes are as good as none: those of temporary files come and go.
const fewInodes = 16

func (e *Engine) diskFull(cause error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.DiskFull, Message: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(e.Repo.CommonDir)}}
	if r, err := spaceAt(e.Dir()); errors.Is(cause, unix.EDQUOT) {
		h.Message, h.Next = "the disk quota is used up", []string{"quota -s"}
	} else if err == nil && r.inodes > 0 && r.inodesFree < fewInodes {
		h.Message = "no inode left on the device of the repository: it has too many files"
		h.Next = []string{"df -i " + gitops.Pasteable(e.Repo.CommonDir)}
	}
	if cause != nil {
		h.Message += ": " + gitops.Escape(cause.Error())
	}
	return h
}

// crowded returns the hold of a workspace's disk that takes no more files: nobody may have been able to write it down.
func (e *Engine) crowded() *ledger.Hold {
	place := e.Store.Workspace(e.Record)
	s, err := spaceAt(place)
	if err != nil || s.inodes == 0 || s.inodesFree >= s.inodes/100 {
		return nil
	}
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: fmt.Sprintf("the disk has room for %d more files; the prison is not left running", s.inodesFree),
		Next: []string{"df -i " + gitops.Pasteable(place), "git airlock start"}}
}
