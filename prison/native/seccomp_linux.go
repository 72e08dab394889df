//go:build linux && (amd64 || arm64)

package native

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, see seccomp(2). Both machines are little-endian: the low half of
// an argument comes first, and every bit looked at here is in it.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoAF  = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
)

// lastKnown is the highest system call number that this filter was written for. What a newer kernel
// adds does not exist inside until somebody has looked at it.
const lastKnown = 469

const (
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// A file with these bits in the workspace would be on the host's disk, too.
	setIDBits = unix.S_ISUID | unix.S_ISGID
	createBit = unix.O_CREAT | 0x400000 // and __O_TMPFILE, which O_TMPFILE contains
)

// refused are calls that nothing an agent does needs, and that open much of the kernel to it.
var refused = append([]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}, refusedHere...)

const sysOpenTreeAttr = 467 // not in x/sys yet

// program is a filter in the making. Every rule ends in a return or leaves the call's number loaded.
type program []unix.SockFilter

func (p *program) emit(code uint16, jt, jf uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(offset uint32) { p.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
func (p *program) ret(value uint32)   { p.emit(unix.BPF_RET|unix.BPF_K, 0, 0, value) }

func (p *program) loadArg(n int) { p.load(dataArgs + 8*uint32(n)) }

// Conditional jumps say how many instructions to skip when the condition does not hold.
func (p *program) ifEqual(k uint32, skip uint8) {
	p.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, skip, k)
}
func (p *program) ifAnyBit(k uint32, skip uint8) {
	p.emit(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, skip, k)
}
func (p *program) ifAtLeast(k uint32, skip uint8) {
	p.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, skip, k)
}

func (p *program) answer(number, value uint32) {
	p.ifEqual(number, 1)
	p.ret(value)
}

// refuseBits refuses a call with any of the bits in an argument.
func (p *program) refuseBits(number uint32, arg int, bits uint32) {
	p.ifEqual(number, 4)
	p.loadArg(arg)
	p.ifAnyBit(bits, 1)
	p.ret(retEPERM)
	p.ret(retAllow)
}

// refuseSetIDCreate refuses to create a file with set-id bits; without a creating flag the mode is
// whatever the register holds.
func (p *program) refuseSetIDCreate(number uint32, flags, mode int) {
	p.ifEqual(number, 6)
	p.loadArg(flags)
	p.ifAnyBit(createBit, 3)
	p.loadArg(mode)
	p.ifAnyBit(setIDBits, 1)
	p.ret(retEPERM)
	p.ret(retAllow)
}

// only allows a call with one of the values in an argument and gives the others an answer.
func (p *program) only(number uint32, arg int, otherwise uint32, values ...uint32) {
	p.ifEqual(number, uint8(2+2*len(values)))
	p.loadArg(arg)
	for _, v := range values {
		p.answer(v, retAllow)
	}
	p.ret(otherwise)
}

// never refuses a call with one of the values in an argument.
func (p *program) never(number uint32, arg int, values ...uint32) {
	p.ifEqual(number, uint8(2+2*len(values)))
	p.loadArg(arg)
	for _, v := range values {
		p.answer(v, retEPERM)
	}
	p.ret(retAllow)
}

func filter() program {
	var p program
	p.load(dataArch)
	p.ifEqual(auditArch, 1)
	p.emit(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1)
	p.ret(retKill) // another machine's calls have other numbers
	p.load(dataNumber)
	p.ifAtLeast(lastKnown+1, 1) // x32's numbers are higher, too
	p.ret(retNoSys)
	for _, number := range refused {
		p.answer(number, retEPERM)
	}
	// What cannot be looked into does not exist: callers then use the older call.
	p.answer(unix.SYS_CLONE3, retNoSys)
	p.answer(unix.SYS_OPENAT2, retNoSys)
	p.refuseBits(unix.SYS_CLONE, 0, namespaceFlags)
	p.refuseBits(unix.SYS_FCHMOD, 1, setIDBits)
	p.refuseBits(unix.SYS_FCHMODAT, 2, setIDBits)
	p.refuseBits(unix.SYS_FCHMODAT2, 2, setIDBits)
	p.refuseBits(unix.SYS_MKNODAT, 2, setIDBits)
	p.refuseSetIDCreate(unix.SYS_OPENAT, 2, 3)
	p.only(unix.SYS_SOCKET, 0, retNoAF, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	p.never(unix.SYS_IOCTL, 1, unix.TIOCSTI, unix.TIOCLINUX) // typing into a terminal for somebody else
	p.legacy()
	p.ret(retAllow)
	return p
}

// installFilter filters this thread's calls and those of all it becomes and starts.
func installFilter() error {
	p := filter()
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
	runtime.KeepAlive(p)
	return err
}

// filterMissing says why there is no filter on this machine.
const filterMissing = ""
