//go:build linux

package native_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// attemptEnv makes the test binary make all attempts, inside, and print their results.
const attemptEnv = "ATTEMPT"

// attempt is an action to try inside, and the error with which it must fail.
type attempt struct {
	name string
	want syscall.Errno
	try  func() error
}

func call(number uintptr, args ...uintptr) func() error {
	var a [6]uintptr
	copy(a[:], args)
	return func() error {
		if _, _, e := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
			return e
		}
		return nil
	}
}

func socket(family int) func() error {
	return func() error {
		fd, err := unix.Socket(family, unix.SOCK_RAW, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

// keepsCoreLimit sets the limit, which must seem to succeed. It returns EXDEV if the limit is still 1 afterwards.
func keepsCoreLimit(limit uint64) func() error {
	return func() error {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
		var now unix.Rlimit
		if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now); err != nil || now.Cur != 1 || now.Max != 1 {
			return err
		}
		return unix.EXDEV
	}
}

func text(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s + "\x00"))) }

const tree = 64 // large enough for every kernel structure, full of zeros

var zeros [tree]byte

var attempts = []attempt{
	{"unshare user", unix.EPERM, call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
	{"unshare network", unix.EPERM, call(unix.SYS_UNSHARE, unix.CLONE_NEWNET)},
	{"clone user", unix.EPERM, func() error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	}},
	{"clone3", unix.ENOSYS, call(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&zeros)), tree)},
	{"setns", unix.EPERM, call(unix.SYS_SETNS, 0, 0)},
	{"mount", unix.EPERM, func() error { return unix.Mount("t", "/tmp", "tmpfs", 0, "") }},
	{"umount", unix.EPERM, func() error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
	{"pivot_root", unix.EPERM, func() error { return unix.PivotRoot(".", ".") }},
	{"chroot", unix.EPERM, func() error { return unix.Chroot("/tmp") }},
	{"open_tree", unix.EPERM, func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err }},
	{"fsopen", unix.EPERM, func() error { _, err := unix.Fsopen("tmpfs", 0); return err }},
	{"mount_setattr", unix.EPERM, call(unix.SYS_MOUNT_SETATTR)},
	{"keyctl", unix.EPERM, call(unix.SYS_KEYCTL)},
	{"add_key", unix.EPERM, call(unix.SYS_ADD_KEY)},
	{"request_key", unix.EPERM, call(unix.SYS_REQUEST_KEY)},
	{"bpf", unix.EPERM, call(unix.SYS_BPF)},
	{"perf_event_open", unix.EPERM, call(unix.SYS_PERF_EVENT_OPEN)},
	{"userfaultfd", unix.EPERM, call(unix.SYS_USERFAULTFD)},
	{"io_uring_setup", unix.EPERM, call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&zeros)))},
	{"requests of the whole machine", unix.ENOSYS, call(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&zeros)))},
	{"fanotify_init", unix.EPERM, call(unix.SYS_FANOTIFY_INIT)},
	{"kexec_load", unix.EPERM, call(unix.SYS_KEXEC_LOAD)},
	{"init_module", unix.EPERM, call(unix.SYS_INIT_MODULE)},
	{"open_by_handle_at", unix.EPERM, call(unix.SYS_OPEN_BY_HANDLE_AT)},
	{"syslog", unix.EPERM, call(unix.SYS_SYSLOG, 3)},
	{"reboot", unix.EPERM, call(unix.SYS_REBOOT)},
	{"openat2", unix.ENOSYS, call(unix.SYS_OPENAT2)},
	{"a call that is too new", unix.ENOSYS, call(700)},
	{"x32", unix.ENOSYS, call(0x40000000 | unix.SYS_GETPID)},
	{"kcmp", unix.EPERM, call(unix.SYS_KCMP)},
	{"move_pages", unix.EPERM, call(unix.SYS_MOVE_PAGES)},
	{"set_mempolicy", unix.EPERM, call(unix.SYS_SET_MEMPOLICY)},
	{"process_madvise", unix.EPERM, call(unix.SYS_PROCESS_MADVISE)},
	{"quotactl", unix.EPERM, call(unix.SYS_QUOTACTL)},
	{"personality without randomization", unix.EPERM, call(unix.SYS_PERSONALITY, 0x40000)},
	{"personality of now", 0, func() error {
		_, _, e := syscall.RawSyscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
		if e != 0 {
			return e
		}
		return nil
	}},
	{"addresses of another program", unix.EPERM, call(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE, uintptr(unsafe.Pointer(&zeros)))},
	{"vsock", unix.EAFNOSUPPORT, socket(unix.AF_VSOCK)},
	{"kernel crypto", unix.EAFNOSUPPORT, socket(unix.AF_ALG)},
	{"packets", unix.EAFNOSUPPORT, socket(unix.AF_PACKET)},
	{"raw network", unix.EPERM, func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP); return err }},
	{"netlink", 0, func() error { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return err }},
	{"netlink of the firewall", unix.EPROTONOSUPPORT, func() error {
		_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		return err
	}},
	{"SCTP", unix.EPROTONOSUPPORT, func() error {
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
		return err
	}},
	{"a pair of cluster sockets", unix.EAFNOSUPPORT, func() error {
		_, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM, 0)
		return err
	}},
	{"type into a terminal", unix.EPERM, call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&zeros)))},
	{"paste into a console", unix.EPERM, call(unix.SYS_IOCTL, 0, unix.TIOCLINUX, uintptr(unsafe.Pointer(&zeros)))},
	{"type into a terminal, with high bits", unix.EPERM, call(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, uintptr(unsafe.Pointer(&zeros)))},
	{"create set-uid", unix.EPERM, func() error { _, err := unix.Open("suid", unix.O_CREAT|unix.O_WRONLY, 0o4755); return err }},
	{"create set-gid", unix.EPERM, func() error { _, err := unix.Open("sgid", unix.O_CREAT|unix.O_WRONLY, 0o2755); return err }},
	{"open with garbage as mode", 0, func() error { _, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0o7777); return err }},
	{"chmod set-uid", unix.EPERM, func() error { return unix.Fchmodat(unix.AT_FDCWD, os.Args[0], 0o4755, 0) }},
	{"chmod set-uid of a folder", unix.EPERM, func() error { return unix.Chmod(".", 0o4700) }},
	{"chmod sticky", 0, func() error { return unix.Chmod(".", 0o1700) }},
	{"fchmodat2 set-uid", unix.EPERM, call(unix.SYS_FCHMODAT2, ^uintptr(99), text("."), 0o4755, 0)},
	{"mknod set-uid", unix.EPERM, func() error { return unix.Mknod("node", unix.S_IFREG|0o4755, 0) }},
	{"mknod disk", unix.EPERM, func() error { return unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) }},
	{"become root", unix.EINVAL, call(unix.SYS_SETRESUID, 0, 0, 0)},
	{"groups", unix.EPERM, call(unix.SYS_SETGROUPS, 0, 0)},
	{"host name", unix.EPERM, func() error { return unix.Sethostname([]byte("x")) }},
	{"secure bits", unix.EPERM, call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 0)},
	{"ambient capability", unix.EPERM, call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_CHOWN)},
	{"core dumps", unix.EXDEV, keepsCoreLimit(1 << 20)},
	{"real-time priority", unix.EPERM, func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	}},
	{"no limit by which a program could be started for core dumps", unix.EXDEV, keepsCoreLimit(0)},
	{"trace init", unix.EPERM, func() error { return unix.PtraceSeize(1) }},
	{"read init's memory", unix.EPERM, func() error {
		local := []unix.Iovec{{Base: &zeros[0], Len: 8}}
		_, err := unix.ProcessVMReadv(1, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	}},
	{"take init's descriptor", unix.EPERM, func() error {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 4, 0)
		return err
	}},
	{"the host's abstract socket", unix.ECONNREFUSED, func() error {
		_, err := net.Dial("unix", "@"+os.Getenv("ABSTRACT"))
		return err
	}},
	{"write to init's name", unix.EACCES, func() error { _, err := os.OpenFile("/proc/1/comm", os.O_WRONLY, 0); return err }},
}

// tryAll makes all attempts. It runs inside.
func tryAll() int {
	runtime.LockOSThread()
	got := map[string]int{}
	for _, a := range attempts {
		var errno syscall.Errno
		if err := a.try(); err != nil && !errors.As(err, &errno) {
			errno = -1 & 0xffff
		}
		got[a.name] = int(errno)
	}
	json.NewEncoder(os.Stdout).Encode(got)
	return 0
}

func hasLandlock() bool {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return e == 0 && version > 0
}

// TestAttempts runs the test binary inside, where it tries to get through every wall.
func TestAttempts(t *testing.T) {
	b, s := prepared(t)
	name := "prisontest" + filepath.Base(s.ID)
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start(t, b, s)
	p := attach(t, b, s)
	bringSelf(t, p)
	var out bytes.Buffer
	status, err := p.Exec(t.Context(), prison.Process{
		Argv: []string{"./try"}, Env: []string{attemptEnv + "=1", "ABSTRACT=" + name}, Stdout: &out, Stderr: &out,
	})
	var got map[string]int
	if err != nil || status != 0 || json.Unmarshal(out.Bytes(), &got) != nil {
		t.Fatalf("attempts: %d, %v, %s", status, err, strings.TrimSpace(out.String()))
	}
	for _, a := range attempts {
		if a.name == "mknod disk" && hasLandlock() {
			a.want = unix.EACCES // Landlock refuses before capabilities are checked
		}
		if errno := syscall.Errno(got[a.name]); errno != a.want {
			t.Errorf("%s: %d (%v), want %d (%v)", a.name, errno, errno, a.want, a.want)
		}
	}
}
