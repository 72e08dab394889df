package walls

import "syscall"

// ownLimit returns what this process could have of a resource. Whoever started the engine could have it, too.
func ownLimit(resource int) (int64, bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(resource, &l); err != nil {
		return 0, false
	}
	const most = 1 << 62
	return int64(min(l.Max, most)), true //nolint:gosec // it is less than that
}
