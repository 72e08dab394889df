//go:build !linux

package session

import "syscall"

// KeepDescriptors keeps what our caller has open beside the standard streams from the processes that we start: a daemon that
// outlives us would hold a lock of the caller's, or the pipe by which somebody waits for our end.
func KeepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}
