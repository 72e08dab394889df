//go:build linux && (amd64 || arm64)

package walls

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// networkCalls are the calls that a Go program needs to read and write descriptors and to connect. Calls that are
// allowed only with certain arguments are in [networkFilter].
var networkCalls = append([]uint32{
	unix.SYS_BRK, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOSE, unix.SYS_CONNECT, unix.SYS_EPOLL_CREATE1,
	unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FACCESSAT,
	unix.SYS_FCNTL, unix.SYS_FSTAT, unix.SYS_FUTEX, unix.SYS_GETDENTS64, unix.SYS_GETPEERNAME, unix.SYS_GETPID, unix.SYS_GETRANDOM,
	unix.SYS_GETSOCKNAME, unix.SYS_GETSOCKOPT, unix.SYS_GETTID, unix.SYS_LSEEK, unix.SYS_MADVISE, unix.SYS_MEMBARRIER,
	unix.SYS_MREMAP, unix.SYS_MUNMAP, unix.SYS_NANOSLEEP, unix.SYS_NEWFSTATAT, unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PREAD64,
	unix.SYS_PWRITE64, unix.SYS_READ, unix.SYS_READLINKAT, unix.SYS_READV, unix.SYS_RECVFROM, unix.SYS_RECVMSG,
	unix.SYS_RESTART_SYSCALL, unix.SYS_RSEQ, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_YIELD, unix.SYS_SENDMMSG, unix.SYS_SENDMSG, unix.SYS_SENDTO, unix.SYS_SETSOCKOPT,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_SHUTDOWN, unix.SYS_SIGALTSTACK, unix.SYS_STATX, unix.SYS_TGKILL, unix.SYS_UNAME,
	unix.SYS_WRITE, unix.SYS_WRITEV,
}, networkCallsHere...)

// networkFamilies are the socket families for resolving names, for connections, and for reading routes.
var networkFamilies = []socketFamily{
	{unix.AF_INET, []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP}},
	{unix.AF_INET6, []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP}},
	{unix.AF_NETLINK, []uint32{unix.NETLINK_ROUTE}},
}

// networkFilter refuses to execute or trace programs, to create processes, to write files by name, to make memory
// executable, and to bind, listen or accept.
func networkFilter() program {
	p := begin(retKill)
	p.ifEqual(unix.SYS_CLONE, 4)
	p.loadArg(0)
	p.ifAnyBit(unix.CLONE_THREAD, 1)
	p.ret(retAllow)
	p.ret(retEPERM)
	p.answer(unix.SYS_CLONE3, retNoSys) // a filter cannot read its arguments; callers use the older call after ENOSYS
	p.refuseBits(unix.SYS_OPENAT, 2, unix.O_WRONLY|unix.O_RDWR|createBit|unix.O_TRUNC)
	p.refuseBits(unix.SYS_MMAP, 2, unix.PROT_EXEC)
	p.refuseBits(unix.SYS_MPROTECT, 2, unix.PROT_EXEC)
	p.families(networkFamilies)
	p.allow(networkCalls)
	p.ret(retEPERM)
	return p
}

// FilterNetwork filters the system calls of all threads of this process, which connects a prison with the network.
func FilterNetwork() error {
	p := networkFilter()
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(p)
	if e != 0 {
		return fmt.Errorf("filter system calls: %w", e)
	}
	return nil
}
