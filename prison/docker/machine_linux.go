package docker

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
)

// dialIn connects to a socket in a folder whose path may be longer than a socket's can be.
func dialIn(ctx context.Context, dir, name string) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name))
}

// checkOwner checks that the workspace is the phantom's and nobody else's on this machine's disk, which is also
// how an engine shows that it is on this machine.
func checkOwner(s prison.Spec) error {
	info, err := os.Lstat(s.Workspace)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != s.UID || int(owner.Gid) != s.GID || info.Mode() != os.ModeDir|0o700 {
		return unavailable("the workspace on this machine's disk does not belong to the phantom after the engine made it so",
			"use an engine on this machine, without its own mapping of user ids")
	}
	return nil
}
