package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// fewInodes is the number of free inodes that counts as none: temporary files need some.
const fewInodes = 16

// FullHold returns the hold for the full file system of an airlock's host state dir, whose repository is at commonDir. cause is the error
// that it led to, or nil.
func FullHold(dir, commonDir string, cause error) ledger.Hold {
	h := ledger.Hold{Reason: ledger.DiskFull, Message: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(commonDir)}}
	if r, err := SpaceAt(dir); errors.Is(cause, unix.EDQUOT) {
		h.Message, h.Next = "the disk quota is used up", []string{"quota -s"}
	} else if err == nil && r.Inodes > 0 && r.InodesFree < fewInodes {
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
	s, err := SpaceAt(workspace)
	if err != nil || s.Inodes == 0 || s.InodesFree >= s.Inodes/100 {
		return nil
	}
	return &ledger.Hold{Reason: ledger.WorkspaceFull, Message: fmt.Sprintf("the disk has room for %d more files; the prison is not left running", s.InodesFree),
		Next: []string{"df -i " + gitops.Pasteable(workspace), "git airlock start"}}
}
