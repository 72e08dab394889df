//go:build !linux

package walls

import "errors"

// defaultProfile returns no filter, since containers need an engine on this machine, and Linux.
func defaultProfile() ([]byte, error) { return nil, errors.ErrUnsupported }

// ownLimit returns no limit, since the engine runs in a virtual machine.
func ownLimit(int) (int64, bool) { return 0, false }
