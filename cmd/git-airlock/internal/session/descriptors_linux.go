package session

import "golang.org/x/sys/unix"

// KeepDescriptors keeps what our caller has open beside the standard streams from the processes that we start: a daemon that
// outlives us would hold a lock of the caller's, or the pipe by which somebody waits for our end. What is refused by kernels
// before 5.11 is not worth an error.
func KeepDescriptors() {
	unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // see above
}
