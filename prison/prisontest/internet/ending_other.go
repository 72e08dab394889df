//go:build !linux

package internet

import "syscall"

// endingWithThis returns nil, since this system has no such setting, and no prison to test.
func endingWithThis() *syscall.SysProcAttr { return nil }
