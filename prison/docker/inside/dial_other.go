//go:build !linux

package inside

import (
	"context"
	"net"
	"path/filepath"
)

// dialIn connects to a socket in a folder, if its path is not too long.
func dialIn(ctx context.Context, dir, name string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, name))
}
