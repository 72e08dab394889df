package docker

import (
	"fmt"
	"os"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
)

// checkOwner checks that the workspace belongs to the phantom alone on this machine's disk. That also proves that
// the engine is on this machine.
func checkOwner(s prison.Spec) error {
	info, err := os.Lstat(s.Workspace)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != s.UID || int(owner.Gid) != s.GID || info.Mode() != os.ModeDir|0o700 {
		return dialect.Unavailable("the workspace on this machine's disk does not belong to the phantom after the engine made it so",
			"use an engine on this machine, without its own mapping of user ids")
	}
	return nil
}

// folderOf returns what identifies a folder inside, as [sayFolder] prints it: its device and inode, and its owner and time. A runtime with
// a kernel of its own shows other devices and inodes, but no folder of the host except the workspace belongs to the phantom.
func folderOf(path string) (folder, owner string) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", ""
	}
	i, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", ""
	}
	return fmt.Sprintf("%d:%d", i.Dev, i.Ino), fmt.Sprintf("%d:%d:%d", i.Uid, i.Gid, i.Mtim.Sec)
}
