package promote

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// diskFloor is the free space below which a failure is taken for a full disk.
const diskFloor = 4 << 20

// diskFull tells whether the file system that holds path has no room.
func diskFull(path string) bool {
	r, err := roomAt(path)
	return err == nil && r.free < diskFloor
}

// unwritable returns why nothing can be written where a landing has to write; nil if it can.
func (e *Engine) unwritable() error {
	for _, dir := range []string{e.Dir(), e.Repo.GitDir, e.Repo.CommonDir, filepath.Join(e.Repo.CommonDir, "objects"), filepath.Join(e.Repo.CommonDir, "refs")} {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// room is the hold that follows from the file system alone, nil if there is room and it can be written to.
func (c *cycle) room() *Hold {
	var h Hold
	switch err := c.unwritable(); {
	case err != nil:
		h = c.readOnly(err)
	case diskFull(c.Dir()):
		h = c.diskFull("")
	default:
		return nil
	}
	return &h
}

// fewInodes are as good as none: those of temporary files come and go.
const fewInodes = 16

func (c *cycle) diskFull(cause string) Hold {
	h := Hold{Reason: DiskFull, Message: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(c.Repo.CommonDir)}}
	if r, err := roomAt(c.Dir()); err == nil && r.inodes > 0 && r.inodesFree < fewInodes {
		h.Next = []string{"df -i " + gitops.Pasteable(c.Repo.CommonDir)}
	}
	if cause != "" {
		h.Message += ": " + gitops.Escape(cause)
	}
	return h
}

func (c *cycle) readOnly(cause error) Hold {
	return Hold{Reason: DiskFull, Message: "nothing can be written to the git directory: " + cause.Error(),
		Next: []string{"ls -ld " + gitops.Pasteable(c.Repo.CommonDir), "findmnt --target " + gitops.Pasteable(c.Repo.CommonDir)}}
}
