//go:build !linux

package inside

import (
	"context"
	"net"
	"path/filepath"
)

// dialIn connects to the keeper's socket in a folder, if the path is not too long.
func dialIn(ctx context.Context, dir string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socketName))
}
