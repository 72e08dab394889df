//go:build !linux

package session

import "syscall"

// KeepDescriptors closes the caller's descriptors, except the standard streams, in processes that this one starts. A daemon that
// outlives this process would otherwise hold a lock of the caller, or the pipe with which another process waits for the end of
// this one.
func KeepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}
