package selftest

import (
	"encoding/binary"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// forbidden are the system calls that must be refused. Their arguments are chosen so that they change nothing even if
// they are allowed.
var forbidden = []calls.Call{
	{Name: "unshare(CLONE_NEWUSER)", Number: unix.SYS_UNSHARE, Args: [6]uintptr{unix.CLONE_NEWUSER}},
	{Name: "unshare(CLONE_NEWNS)", Number: unix.SYS_UNSHARE, Args: [6]uintptr{unix.CLONE_NEWNS}},
	{Name: "setns", Number: unix.SYS_SETNS, Args: [6]uintptr{0, unix.CLONE_NEWNS}},
	{Name: "mount", Number: unix.SYS_MOUNT, Args: [6]uintptr{}},
	{Name: "umount2", Number: unix.SYS_UMOUNT2, Args: [6]uintptr{calls.Pointer}, Data: []byte("/nowhere\x00")},
	{Name: "pivot_root", Number: unix.SYS_PIVOT_ROOT, Args: [6]uintptr{}},
	{Name: "chroot", Number: unix.SYS_CHROOT, Args: [6]uintptr{calls.Pointer}, Data: []byte("/nowhere\x00")},
	{Name: "open_tree", Number: unix.SYS_OPEN_TREE, Args: [6]uintptr{0, 0, unix.OPEN_TREE_CLONE}},
	{Name: "fsopen", Number: unix.SYS_FSOPEN, Args: [6]uintptr{calls.Pointer, unix.FSOPEN_CLOEXEC}, Data: []byte("tmpfs\x00")},
	{Name: "ptrace of PID 1", Number: unix.SYS_PTRACE, Args: [6]uintptr{0x4206, 1}}, // PTRACE_SEIZE, which does not stop the process
	{Name: "process_vm_readv of PID 1", Number: unix.SYS_PROCESS_VM_READV, Args: [6]uintptr{1, calls.Pointer, 1, calls.Pointer + 16, 1}, Data: iovecs},
	{Name: "kcmp", Number: unix.SYS_KCMP, Args: [6]uintptr{1, 1, 0, 0, 0}},
	{Name: "keyctl", Number: unix.SYS_KEYCTL, Args: [6]uintptr{unix.KEYCTL_GET_KEYRING_ID, ^uintptr(3 - 1)}}, // KEY_SPEC_SESSION_KEYRING
	{Name: "add_key", Number: unix.SYS_ADD_KEY, Args: [6]uintptr{}},
	{Name: "request_key", Number: unix.SYS_REQUEST_KEY, Args: [6]uintptr{}},
	{Name: "bpf", Number: unix.SYS_BPF, Args: [6]uintptr{0xffff}},
	{Name: "perf_event_open", Number: unix.SYS_PERF_EVENT_OPEN, Args: [6]uintptr{}},
	{Name: "userfaultfd", Number: unix.SYS_USERFAULTFD, Args: [6]uintptr{}},
	{Name: "io_uring_setup", Number: unix.SYS_IO_URING_SETUP, Args: [6]uintptr{1, calls.Pointer}},
	{Name: "fanotify_init", Number: unix.SYS_FANOTIFY_INIT, Args: [6]uintptr{}},
	{Name: "open_by_handle_at", Number: unix.SYS_OPEN_BY_HANDLE_AT, Args: [6]uintptr{}},
	{Name: "init_module", Number: unix.SYS_INIT_MODULE, Args: [6]uintptr{0, 0, calls.Pointer}, Data: []byte("\x00")},
	{Name: "kexec_load", Number: unix.SYS_KEXEC_LOAD, Args: [6]uintptr{0, 0, 0, 0xfff0}},
	{Name: "acct", Number: unix.SYS_ACCT, Args: [6]uintptr{calls.Pointer}, Data: []byte("/nowhere\x00")},
	{Name: "swapoff", Number: unix.SYS_SWAPOFF, Args: [6]uintptr{calls.Pointer}, Data: []byte("/nowhere\x00")},
	{Name: "quotactl", Number: unix.SYS_QUOTACTL, Args: [6]uintptr{0x800001 << 8}},
	{Name: "syslog", Number: unix.SYS_SYSLOG, Args: [6]uintptr{3, calls.Pointer, 1}},
	{Name: "clock_settime", Number: unix.SYS_CLOCK_SETTIME, Args: [6]uintptr{0, 0}},
	{Name: "sethostname", Number: unix.SYS_SETHOSTNAME, Args: [6]uintptr{calls.Pointer, 1 << 20}},
	{Name: "personality(ADDR_NO_RANDOMIZE)", Number: unix.SYS_PERSONALITY, Args: [6]uintptr{0x40000}},
	{Name: "prctl(PR_SET_MM)", Number: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE, calls.Pointer}, Data: make([]byte, 8)},
	{Name: "ioctl(TIOCSTI)", Number: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSTI, calls.Pointer}, Data: []byte("x")},
	{Name: "ioctl(TIOCSETD)", Number: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSETD, calls.Pointer}, Data: make([]byte, 4)},
	{Name: "mmap(MAP_HUGETLB)", Number: unix.SYS_MMAP, Args: [6]uintptr{0, 2 << 20, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB, ^uintptr(0)}},
	{Name: "memfd_create(MFD_HUGETLB)", Number: unix.SYS_MEMFD_CREATE, Args: [6]uintptr{calls.Pointer, unix.MFD_HUGETLB}, Data: []byte("x\x00")},
	{Name: "shmget(SHM_HUGETLB)", Number: unix.SYS_SHMGET, Args: [6]uintptr{0, 2 << 20, 0o4600 | unix.IPC_CREAT}},
	{Name: "socket(AF_VSOCK)", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
	{Name: "socket(AF_ALG)", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
	{Name: "socket(AF_PACKET)", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}},
	{Name: "socket(SOCK_RAW)", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}},
}

// iovecs are the two iovec arguments of process_vm_readv(2), for eight bytes each, followed by those bytes.
var iovecs = func() (b []byte) {
	for range 2 {
		b = binary.LittleEndian.AppendUint64(b, calls.Pointer+32)
		b = binary.LittleEndian.AppendUint64(b, 8)
	}
	return b
}()
