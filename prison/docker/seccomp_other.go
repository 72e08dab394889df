//go:build !linux

package docker

import "errors"

// defaultProfile has no filter to return: containers need an engine on this machine, with Linux.
func defaultProfile() ([]byte, error) { return nil, errors.ErrUnsupported }
