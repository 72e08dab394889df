package execs

import (
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// numberIn is NS_GET_TGID_IN_PIDNS of Linux 6.11 and later. It returns the number that a thread's process has in a pid namespace, in a
// twentieth of the time that a file of /proc takes.
const numberIn = 0x8004b709

// namespace is a pid namespace, or -1 for one that could not be opened.
type namespace int

// namespaceOf opens the pid namespace of a process, which is "self" or a number.
func namespaceOf(process string) namespace {
	fd, err := unix.Open("/proc/"+process+"/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return namespace(fd)
}

// number returns the number of a thread's process in the namespace. ok is false where the kernel cannot tell it.
func (s namespace) number(thread int) (n int, ok bool) {
	if s < 0 {
		return 0, false
	}
	r, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(s), numberIn, uintptr(thread))
	return int(r), e == 0 && r > 0
}

func (s namespace) close() {
	if s >= 0 {
		unix.Close(int(s))
	}
}

// group returns the process of a thread, as a number outside, or 0 without one.
func (r *answerer) group(thread int) int {
	if n, ok := r.outside.number(thread); ok {
		return n
	}
	return r.proc.ids(thread).group
}

// openProcess returns a pidfd of a process, or -1 if there is none, for example because pid is a thread that is not the first of its
// process.
func openProcess(pid int) int {
	fd, _, e := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0)
	if e != 0 {
		return -1
	}
	return int(fd)
}

// parentOf returns the parent of the process of a pidfd, as a number outside. Linux before 6.13 cannot tell it.
func parentOf(pidfd int) (parent int, ok bool) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_PID}
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(pidfd), unix.PIDFD_GET_INFO, uintptr(unsafe.Pointer(&info)))
	return int(info.Ppid), e == 0
}

// insideOf returns the number that a process has inside.
func (r *answerer) insideOf(p *process) int {
	if r.within < 0 {
		r.within = namespaceOf(strconv.Itoa(p.pid))
	}
	if n, ok := r.within.number(p.pid); ok {
		return n
	}
	return r.proc.inside(p.fd)
}
