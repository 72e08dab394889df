package inside

import (
	"context"
	"fmt"
	"net"
	"os"
)

// dialIn connects to the keeper's socket in a folder, whose path may be longer than the limit for sockets.
func dialIn(ctx context.Context, dir string) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName))
}
