//go:build !linux

package docker

import (
	"context"
	"net"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
)

// dialIn connects to a socket in a folder, if its path is not too long.
func dialIn(ctx context.Context, dir, name string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, name))
}

// checkOwner trusts the engine: it runs in a machine of its own, which shows owners that this one does not know.
func checkOwner(prison.Spec) error { return nil }
