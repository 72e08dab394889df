//go:build !linux

package docker

// ownLimit is not known: the engine is in a machine of its own.
func ownLimit(int) (int64, bool) { return 0, false }
