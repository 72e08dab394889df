package walls

import "syscall"

// ownLimit returns the highest limit that this process could set for a resource. If the engine was started with the same limit, it can
// set that limit, too.
func ownLimit(resource int) (int64, bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(resource, &l); err != nil {
		return 0, false
	}
	const most = 1 << 62
	return int64(min(l.Max, most)), true //nolint:gosec // not larger than most
}
