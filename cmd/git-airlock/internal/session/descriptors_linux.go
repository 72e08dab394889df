package session

import "golang.org/x/sys/unix"

// KeepDescriptors closes the caller's descriptors, except the standard streams, in processes that this one starts. A daemon that
// outlives this process would otherwise hold a lock of the caller, or the pipe with which another process waits for the end of
// this one. Kernels before 5.11 refuse this, which is ignored.
func KeepDescriptors() {
	unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // see above
}
