//go:build !linux

package internet

import "syscall"

// endingWithThis returns nil: this system has no such signal, and no prison to test.
func endingWithThis() *syscall.SysProcAttr { return nil }
