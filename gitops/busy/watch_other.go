//go:build !linux

package busy

import "os"

// watch does nothing: it needs the clock of another process, as on Linux.
func (t *Meter) watch(*os.Process) {}
