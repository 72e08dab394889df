//go:build !linux

package walls

import "errors"

// defaultProfile has no filter to return: containers need an engine on this machine, with Linux.
func defaultProfile() ([]byte, error) { return nil, errors.ErrUnsupported }

// ownLimit is not known: the engine is in a machine of its own.
func ownLimit(int) (int64, bool) { return 0, false }
