package docker

import "syscall"

// openFiles is how many files this process could open: whoever started the engine could, too. 0: not known.
func openFiles() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int64(min(l.Max, 1<<20)) //nolint:gosec // it is small
}
