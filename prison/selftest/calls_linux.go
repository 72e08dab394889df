package selftest

import "golang.org/x/sys/unix"

// calls are what must be refused. Their arguments are such that they change nothing, also where they are not.
var calls = []call{
	{"unshare(CLONE_NEWUSER)", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, nil},
	{"unshare(CLONE_NEWNS)", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}, nil},
	{"setns", unix.SYS_SETNS, [6]uintptr{0, unix.CLONE_NEWNS}, nil},
	{"mount", unix.SYS_MOUNT, [6]uintptr{}, nil},
	{"umount2", unix.SYS_UMOUNT2, [6]uintptr{argument}, []byte("/nowhere\x00")},
	{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{}, nil},
	{"chroot", unix.SYS_CHROOT, [6]uintptr{argument}, []byte("/nowhere\x00")},
	{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{0, 0, unix.OPEN_TREE_CLONE}, nil},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{argument, unix.FSOPEN_CLOEXEC}, []byte("tmpfs\x00")},
	{"ptrace of PID 1", unix.SYS_PTRACE, [6]uintptr{0x4206, 1}, nil}, // PTRACE_SEIZE, which does not stop
	{"process_vm_readv of PID 1", unix.SYS_PROCESS_VM_READV, [6]uintptr{1, argument, 1, argument + 16, 1}, iovecs},
	{"kcmp", unix.SYS_KCMP, [6]uintptr{1, 1, 0, 0, 0}, nil},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{unix.KEYCTL_GET_KEYRING_ID, ^uintptr(3 - 1)}, nil}, // KEY_SPEC_SESSION_KEYRING
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{}, nil},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{}, nil},
	{"bpf", unix.SYS_BPF, [6]uintptr{0xffff}, nil},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{}, nil},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{}, nil},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{1, argument}, nil},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{}, nil},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{}, nil},
	{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{0, 0, argument}, []byte("\x00")},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{0, 0, 0, 0xfff0}, nil},
	{"acct", unix.SYS_ACCT, [6]uintptr{argument}, []byte("/nowhere\x00")},
	{"swapoff", unix.SYS_SWAPOFF, [6]uintptr{argument}, []byte("/nowhere\x00")},
	{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{0x800001 << 8}, nil},
	{"syslog", unix.SYS_SYSLOG, [6]uintptr{3, argument, 1}, nil},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{0, 0}, nil},
	{"sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{argument, 1 << 20}, nil},
	{"personality(ADDR_NO_RANDOMIZE)", unix.SYS_PERSONALITY, [6]uintptr{0x40000}, nil},
	{"ioctl(TIOCSTI)", unix.SYS_IOCTL, [6]uintptr{0, unix.TIOCSTI, argument}, []byte("x")},
	{"socket(AF_VSOCK)", unix.SYS_SOCKET, [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, nil},
	{"socket(AF_ALG)", unix.SYS_SOCKET, [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, nil},
	{"socket(AF_PACKET)", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, nil},
	{"socket(SOCK_RAW)", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, nil},
}

// iovecs are two of process_vm_readv(2): eight bytes to behind the second, from there.
var iovecs = func() []byte {
	c := call{number: argument + 32, args: [6]uintptr{8, argument + 32, 8}}
	return c.encode()[:32]
}()
