package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// lastSignal is the highest number of a signal, see signal(7).
	lastSignal = 64
	// ignored is SIG_IGN.
	ignored = 1
)

// restoreSignals unblocks all signals of this thread, and stops ignoring signals in this process. Both settings
// survive execve(2), so a signal that the caller of the program blocked or ignored would be blocked or ignored in
// the agent: a command that SIGTERM does not end, for example.
func restoreSignals() error {
	for signal := uintptr(1); signal <= lastSignal; signal++ {
		var old, byDefault [8]uintptr // larger than struct sigaction of any kernel; its first field is the handler
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, 0, uintptr(unsafe.Pointer(&old)), lastSignal/8, 0, 0)
		if errno == 0 && old[0] == ignored {
			_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&byDefault)), 0, lastSignal/8, 0, 0)
		}
		if errno != 0 {
			return errno
		}
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
}
