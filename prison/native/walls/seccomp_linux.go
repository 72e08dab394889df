//go:build linux && (amd64 || arm64)

package walls

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, see seccomp(2). Both machines are little-endian, so the low half of an argument
// comes first. Every bit that the filter checks is in the low half.
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
	retDone       = uint32(unix.SECCOMP_RET_ERRNO) // the call reports success but has done nothing
	retNoFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retNoProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
)

const (
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// A file with these bits in the workspace would have them on the host's disk, too.
	setIDBits = unix.S_ISUID | unix.S_ISGID
	createBit = unix.O_CREAT | 0x400000 // and __O_TMPFILE, which O_TMPFILE contains
)

// program is a filter that is being assembled. Every rule returns an action, or leaves the number of the call in the accumulator.
type program []unix.SockFilter

func (p *program) emit(code uint16, jt, jf uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(offset uint32) { p.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
func (p *program) ret(value uint32)   { p.emit(unix.BPF_RET|unix.BPF_K, 0, 0, value) }

func (p *program) loadArg(n int) { p.load(dataArgs + 8*uint32(n)) }

// The arguments of conditional jumps are the numbers of instructions to skip when the condition does not hold. ifAtLeast skips one.
func (p *program) ifEqual(k uint32, skip uint8) {
	p.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, skip, k)
}
func (p *program) ifAnyBit(k uint32, skip uint8) {
	p.emit(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, skip, k)
}
func (p *program) ifAtLeast(k uint32) {
	p.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, k)
}

func (p *program) answer(number, value uint32) {
	p.ifEqual(number, 1)
	p.ret(value)
}

// refuseBits refuses a call if an argument has any of the bits.
func (p *program) refuseBits(number uint32, arg int, bits uint32) {
	p.ifEqual(number, 4)
	p.loadArg(arg)
	p.ifAnyBit(bits, 1)
	p.ret(retEPERM)
	p.ret(retAllow)
}

// refuseSetIDCreate refuses to create a file with set-id bits. Without a flag that creates, the mode is not an
// argument, and its register may contain anything.
func (p *program) refuseSetIDCreate(number uint32, flags, mode int) {
	p.ifEqual(number, 6)
	p.loadArg(flags)
	p.ifAnyBit(createBit, 3)
	p.loadArg(mode)
	p.ifAnyBit(setIDBits, 1)
	p.ret(retEPERM)
	p.ret(retAllow)
}

// only allows a call if an argument has one of the values, and otherwise returns the given answer.
func (p *program) only(number uint32, arg int, otherwise uint32, values ...uint32) {
	p.byValue(number, arg, values, retAllow, otherwise)
}

// never refuses a call if an argument has one of the values.
func (p *program) never(number uint32, arg int, values ...uint32) {
	p.byValue(number, arg, values, retEPERM, retAllow)
}

// byValue returns one answer if an argument has one of the values, and otherwise another. It does so if the accumulator has k.
func (p *program) byValue(k uint32, arg int, values []uint32, listed, otherwise uint32) {
	p.ifEqual(k, uint8(2+2*len(values)))
	p.loadArg(arg)
	for _, v := range values {
		p.answer(v, listed)
	}
	p.ret(otherwise)
}

// keepCoreLimit makes changes of the core dump limit report success without effect, see [Rlimits.Set]. Programs that hold secrets set the
// limit to 0, and end if that fails.
func (p *program) keepCoreLimit() {
	p.ifEqual(unix.SYS_SETRLIMIT, 4)
	p.loadArg(0)
	p.answer(unix.RLIMIT_CORE, retDone)
	p.ret(retAllow)
	p.ifEqual(unix.SYS_PRLIMIT64, 9)
	p.loadArg(1)
	p.ifEqual(unix.RLIMIT_CORE, 6)
	for _, half := range []uint32{0, 4} { // without a new limit, the call only reads the current one
		p.load(dataArgs + 8*2 + half)
		p.ifAnyBit(math.MaxUint32, 1)
		p.ret(retDone)
	}
	p.ret(retAllow)
}

// families allows the sockets of each family with the listed protocols. A family without a list may have all
// protocols.
func (p *program) families(list []socketFamily) {
	var body program
	for _, f := range list {
		if len(f.protocols) == 0 {
			body.answer(f.number, retAllow)
			continue
		}
		body.only(f.number, 2, retNoProtocol, f.protocols...)
	}
	p.ifEqual(unix.SYS_SOCKET, uint8(len(body)+2))
	p.loadArg(0)
	*p = append(*p, body...)
	p.ret(retNoFamily)
}

// socketFamily is a family of sockets, with the protocols that a prison may use. For other families and protocols a
// socket would load parts of the kernel that few programs and many attacks use.
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

// refusedRequests are requests of ioctl(2) that no program inside needs: the first two type into a terminal for
// another user, the third loads a line discipline (for example a modem driver) into the kernel, and the last makes
// a terminal the machine's console.
var refusedRequests = []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS}

const shmHugeTLB = 0o4000 // SHM_HUGETLB of linux/shm.h

// personalities are the values in Docker's profile, from linux/personality.h: PER_LINUX and PER_LINUX32, both also
// with UNAME26, and the value that only reads the current one.
var personalities = []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}

// allow lets the given numbers pass and refuses all numbers between them.
func (p *program) allow(numbers []uint32) {
	sorted := slices.Sorted(slices.Values(numbers))
	for len(sorted) > 0 {
		first, n := sorted[0], 1
		for n < len(sorted) && sorted[n] <= sorted[n-1]+1 {
			n++
		}
		p.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 3, 0, sorted[n-1]+1) // continue with the next run
		p.ifAtLeast(first)
		p.ret(retAllow)
		p.ret(retEPERM)
		sorted = sorted[n:]
	}
}

// begin returns the first instructions of a filter, after which the number of the call is loaded. They return foreign for a call of
// another architecture, where the same calls have other numbers.
func begin(foreign uint32) program {
	var p program
	p.load(dataArch)
	p.ifEqual(auditArch, 1)
	p.emit(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1)
	p.ret(foreign)
	p.load(dataNumber)
	return p
}

func filter() program {
	p := begin(retKill)
	// A call of a newer kernel does not exist inside until this package allows it. The numbers of x32 are higher,
	// too.
	p.ifAtLeast(slices.Max(allowed) + 1)
	p.ret(retNoSys)
	// A filter cannot read the arguments of these calls behind a pointer. Callers use the older call when they get
	// ENOSYS.
	p.answer(unix.SYS_CLONE3, retNoSys)
	p.answer(unix.SYS_OPENAT2, retNoSys)
	// The number of requests is limited for the machine (fs.aio-max-nr), not for each user.
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
	// It replaces the addresses by which the recorder of programs recognizes a new program. Only CRIU uses it.
	p.never(unix.SYS_PRCTL, 0, unix.PR_SET_MM)
	// Huge pages belong to the whole machine: root sets a number aside, and no memory limit counts them.
	p.refuseBits(unix.SYS_MMAP, 3, unix.MAP_HUGETLB)
	p.refuseBits(unix.SYS_MEMFD_CREATE, 1, unix.MFD_HUGETLB)
	p.refuseBits(unix.SYS_SHMGET, 2, shmHugeTLB)
	p.keepCoreLimit()
	p.legacy()
	p.allow(allowed)
	p.ret(retEPERM)
	return p
}

// FilterCalls filters the system calls of this thread and of its children.
func FilterCalls() ([]prison.Weakness, error) {
	p := filter()
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
	runtime.KeepAlive(p)
	return nil, err
}

// filterDigest returns the SHA-256 of the filter's instructions (struct sock_filter, in little endian).
func filterDigest() string {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, []unix.SockFilter(filter())) //nolint:errcheck // a hash does not fail
	return hex.EncodeToString(h.Sum(nil))
}

// filterSize returns the number of allowed calls.
func filterSize() int { return len(allowed) }

// filterMissing is the reason why this machine has no filter.
const filterMissing = ""
