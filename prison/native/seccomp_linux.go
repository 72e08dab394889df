//go:build linux && (amd64 || arm64)

package native

import (
	"math"
	"runtime"
	"slices"
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
	retAllow      = unix.SECCOMP_RET_ALLOW
	retKill       = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM      = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys      = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retDone       = uint32(unix.SECCOMP_RET_ERRNO) // the call says it did what it did not
	retNoFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retNoProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

const (
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// A file with these bits in the workspace would be on the host's disk, too.
	setIDBits = unix.S_ISUID | unix.S_ISGID
	createBit = unix.O_CREAT | 0x400000 // and __O_TMPFILE, which O_TMPFILE contains
)

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

// keepCoreLimit lets nobody lower the limit of core dumps, see [builder.setRlimits], and tells nobody: programs that hold
// secrets set it to 0, and end where that fails.
func (p *program) keepCoreLimit() {
	p.ifEqual(unix.SYS_SETRLIMIT, 4)
	p.loadArg(0)
	p.answer(unix.RLIMIT_CORE, retDone)
	p.ret(retAllow)
	p.ifEqual(unix.SYS_PRLIMIT64, 9)
	p.loadArg(1)
	p.ifEqual(unix.RLIMIT_CORE, 6)
	for _, half := range []uint32{0, 4} { // without a new limit it only asks
		p.load(dataArgs + 8*2 + half)
		p.ifAnyBit(math.MaxUint32, 1)
		p.ret(retDone)
	}
	p.ret(retAllow)
}

// families allows a socket of a family with certain protocols; a family without any may have all.
func (p *program) families(list []socketFamily) {
	var body program
	for _, f := range list {
		if len(f.protocols) == 0 {
			body.answer(f.number, retAllow)
			continue
		}
		body.ifEqual(f.number, uint8(2+2*len(f.protocols)))
		body.loadArg(2)
		for _, protocol := range f.protocols {
			body.answer(protocol, retAllow)
		}
		body.ret(retNoProtocol)
	}
	p.ifEqual(unix.SYS_SOCKET, uint8(len(body)+2))
	p.loadArg(0)
	*p = append(*p, body...)
	p.ret(retNoFamily)
}

// socketFamily is a family of sockets with the protocols that a prison has of it. The others are parts of the
// kernel that a socket would load, and that few programs and many attacks use.
type socketFamily struct {
	number    uint32
	protocols []uint32
}

var socketFamilies = []socketFamily{
	{unix.AF_UNIX, nil},
	{unix.AF_INET, []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_MPTCP}},
	{unix.AF_INET6, []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP}},
	{unix.AF_NETLINK, []uint32{unix.NETLINK_ROUTE}}, // for getifaddrs(3)
}

// refusedRequests are those of ioctl(2) that no program inside needs: typing into a terminal for somebody else, what loads
// a line discipline (a driver for modems and the like) into the kernel, and what turns a terminal into the machine's console.
var refusedRequests = []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS}

const shmHugeTLB = 0o4000 // SHM_HUGETLB of linux/shm.h

// personalities are those of Docker's profile, from linux/personality.h: PER_LINUX and PER_LINUX32, each
// also with UNAME26, and asking for the present one.
var personalities = []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}

// allow lets numbers pass and refuses those between them.
func (p *program) allow(numbers []uint32) {
	sorted := slices.Sorted(slices.Values(numbers))
	for len(sorted) > 0 {
		first, n := sorted[0], 1
		for n < len(sorted) && sorted[n] <= sorted[n-1]+1 {
			n++
		}
		p.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 3, 0, sorted[n-1]+1) // on to the next run
		p.ifAtLeast(first, 1)
		p.ret(retAllow)
		p.ret(retEPERM)
		sorted = sorted[n:]
	}
}

func filter() program {
	var p program
	p.load(dataArch)
	p.ifEqual(auditArch, 1)
	p.emit(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1)
	p.ret(retKill) // another machine's calls have other numbers
	p.load(dataNumber)
	// What a newer kernel adds does not exist inside until somebody has looked at it. The numbers of
	// x32 are higher, too.
	p.ifAtLeast(slices.Max(allowed)+1, 1)
	p.ret(retNoSys)
	// What cannot be looked into does not exist: callers then use the older call.
	p.answer(unix.SYS_CLONE3, retNoSys)
	p.answer(unix.SYS_OPENAT2, retNoSys)
	// The machine has so many requests (fs.aio-max-nr), not each user.
	p.answer(unix.SYS_IO_SETUP, retNoSys)
	p.refuseBits(unix.SYS_CLONE, 0, namespaceFlags)
	p.refuseBits(unix.SYS_FCHMOD, 1, setIDBits)
	p.refuseBits(unix.SYS_FCHMODAT, 2, setIDBits)
	p.refuseBits(unix.SYS_FCHMODAT2, 2, setIDBits)
	p.refuseBits(unix.SYS_MKNODAT, 2, setIDBits)
	p.refuseSetIDCreate(unix.SYS_OPENAT, 2, 3)
	p.families(socketFamilies)
	p.only(unix.SYS_SOCKETPAIR, 0, retNoFamily, unix.AF_UNIX)
	p.only(unix.SYS_PERSONALITY, 0, retEPERM, personalities...)
	p.never(unix.SYS_IOCTL, 1, refusedRequests...)
	// Huge pages are the machine's, as many as root has set aside, and no limit of memory counts them.
	p.refuseBits(unix.SYS_MMAP, 3, unix.MAP_HUGETLB)
	p.refuseBits(unix.SYS_MEMFD_CREATE, 1, unix.MFD_HUGETLB)
	p.refuseBits(unix.SYS_SHMGET, 2, shmHugeTLB)
	p.keepCoreLimit()
	p.legacy()
	p.allow(allowed)
	p.ret(retEPERM)
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

// filterSize is how many calls are allowed.
func filterSize() int { return len(allowed) }

// filterMissing says why there is no filter on this machine.
const filterMissing = ""
