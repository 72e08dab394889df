package docker

import (
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
)

// openFiles is a quarter of how many files this process could open, as in a native prison: whoever started the engine could,
// too, and the exporter beside the container, which is of the same uid, must have more. 0: not known.
func openFiles() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int64(min(l.Max/4, prison.MostFiles)) //nolint:gosec // it is small
}
