package prisontest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// outcomes are the accepted results of an action. There are several if kernels or backends refuse the action in different ways.
type outcomes []syscall.Errno

const done = syscall.Errno(0)

var (
	denied   = outcomes{unix.EPERM, unix.EACCES}
	no       = outcomes{unix.EPERM, unix.ENOSYS} // ENOSYS if the kernel lacks the call
	readOnly = outcomes{unix.EROFS, unix.EACCES, unix.EPERM}
	absent   = outcomes{unix.ENOENT, unix.ENOTDIR}
	unheard  = outcomes{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EPERM}
	// ofItsOwn is for actions on PID 1 of a read-only prison, in which no process of the agent runs for long.
	ofItsOwn = outcomes{unix.EPERM, unix.EACCES, done, unix.EFAULT, unix.ENOSYS}
	refused  = outcomes{unix.ECONNREFUSED, unix.ENOENT, unix.EPERM} // no listener, or no access
)

// action is one row of the table: a system call, and the accepted results in a working prison and in a read-only one.
type action struct {
	kind, name       string
	call             calls.Call
	working, looking outcomes
}

// row makes an action with the same accepted results in both kinds of prison.
func row(kind, name string, want outcomes, number uintptr, args ...any) action {
	a := action{kind: kind, name: name, call: calls.Call{Number: number}, working: want, looking: want}
	for i, arg := range args {
		switch arg := arg.(type) {
		case int:
			a.call.Args[i] = uintptr(arg) //nolint:gosec // the kernel reads negative numbers
		case string: // a call has at most one string
			a.call.Args[i], a.call.Data = calls.Pointer, append([]byte(arg), 0)
		case []byte:
			a.call.Args[i], a.call.Data = calls.Pointer, arg
		}
	}
	return a
}

// unless changes the accepted results in a read-only prison.
func (a action) unless(looking outcomes) action {
	a.looking = looking
	return a
}

// opening makes an action that opens a path.
func opening(kind, path string, flags int, want outcomes) action {
	return row(kind, fmt.Sprintf("open %s, flags %#x", path, flags), want, unix.SYS_OPENAT, unix.AT_FDCWD, path, flags, 0o600)
}

// pair makes an action that gives a system file a second path, which begins in the middle of the data. The call's flags are 0.
func pair(name string, want outcomes, number uintptr, second string) action {
	const middle = 100
	data := make([]byte, 2*middle)
	copy(data, "/etc/passwd")
	copy(data[middle:], second)
	a := row("write", name, want, number, unix.AT_FDCWD, data, unix.AT_FDCWD)
	a.call.Args[3] = calls.Pointer + middle
	return a
}

// actions returns the rows of the table. Descriptors are those of the runner: its three streams, and from 3 on, those that it opens.
func (x *box) actions(hostPID, port int, socket string) []action {
	const create = unix.O_CREAT | unix.O_WRONLY
	ok := outcomes{done}
	rows := []action{
		opening("write", "/workspace/made-by-table", create, ok).unless(readOnly),
		opening("write", "/tmp/made-by-table", create, ok),
		opening("write", "/usr/made-by-table", create, readOnly),
		opening("write", "/made-by-table", create, readOnly),
		opening("write", "/etc/passwd", unix.O_WRONLY, readOnly),
		opening("write", "/bin/sh", unix.O_WRONLY, readOnly),
		opening("write", "/proc/sys/kernel/core_pattern", unix.O_WRONLY, append(readOnly, absent...)),
		opening("write", "/proc/sys/kernel/hostname", unix.O_WRONLY, readOnly),
		opening("write", "/proc/sysrq-trigger", unix.O_WRONLY, append(readOnly, absent...)),
		opening("write", "/proc/1/mem", unix.O_RDWR, denied).unless(ofItsOwn),
		opening("write", "/proc/1/comm", unix.O_WRONLY, denied).unless(ofItsOwn),
		row("write", "mkdir /usr", readOnly, unix.SYS_MKDIRAT, unix.AT_FDCWD, "/usr/made-by-table", 0o755),
		row("write", "unlink /etc/hosts", append(readOnly, unix.EBUSY), unix.SYS_UNLINKAT, unix.AT_FDCWD, "/etc/hosts", 0),
		row("write", "chmod /usr/bin", readOnly, unix.SYS_FCHMODAT, unix.AT_FDCWD, "/usr/bin", 0o777),
		row("write", "chown to root", append(readOnly, unix.EINVAL), unix.SYS_FCHOWNAT, unix.AT_FDCWD, "/workspace", 0, 0, 0),
		row("write", "truncate a program", readOnly, unix.SYS_TRUNCATE, "/bin/sh", 0),
		pair("hard link of a system file", outcomes{unix.EXDEV, unix.EROFS, unix.EPERM}, unix.SYS_LINKAT, "/workspace/linked"),
		pair("rename a system file", append(readOnly, unix.EXDEV), unix.SYS_RENAMEAT2, "/tmp/renamed"),

		opening("read", "/etc/shadow", unix.O_RDONLY, append(denied, absent...)),
		opening("read", "/proc/1/environ", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", "/proc/1/maps", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", "/proc/1/root", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", "/proc/1/cwd", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", "/proc/1/fd", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", "/proc/1/exe", unix.O_RDONLY, denied).unless(ofItsOwn),
		opening("read", fmt.Sprintf("/proc/%d/status", hostPID), unix.O_RDONLY, absent),
		opening("read", x.spec.Dir, unix.O_RDONLY, append(denied, absent...)),
		opening("read", x.spec.Workspace, unix.O_RDONLY, append(denied, absent...)),
		opening("read", "/proc/self/root/../../../../../../root", unix.O_RDONLY, append(denied, absent...)),
		row("read", "kernel log", no, unix.SYS_SYSLOG, 3, make([]byte, 100), 100),
		row("read", "open by handle", no, unix.SYS_OPEN_BY_HANDLE_AT, unix.AT_FDCWD, make([]byte, 100), 0),

		row("look", "session of a host process", outcomes{unix.ESRCH}, unix.SYS_GETSID, hostPID),
		row("look", "limits of a host process", outcomes{unix.ESRCH}, unix.SYS_PRLIMIT64, hostPID, unix.RLIMIT_NOFILE, 0, 0),
		row("look", "compare with PID 1", no, unix.SYS_KCMP, 1, 1, 0, 0, 0),

		row("kill", "a host process", outcomes{unix.ESRCH}, unix.SYS_KILL, hostPID, 0),
		row("kill", "its descriptor", outcomes{unix.ESRCH, unix.ENOSYS}, unix.SYS_PIDFD_OPEN, hostPID, 0),
		row("kill", "raise the priority", denied, unix.SYS_SETPRIORITY, 0, 0, -20),
		row("kill", "real-time priority", denied, unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, binary.LittleEndian.AppendUint32(nil, 50)),

		row("mount", "memory", no, unix.SYS_MOUNT, 0, "/tmp", 0, 0, 0),
		row("mount", "umount /proc", no, unix.SYS_UMOUNT2, "/proc", unix.MNT_DETACH),
		row("mount", "pivot_root", no, unix.SYS_PIVOT_ROOT, "."),
		row("mount", "chroot", no, unix.SYS_CHROOT, "/tmp"),
		row("mount", "open_tree", no, unix.SYS_OPEN_TREE, unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE),
		row("mount", "move_mount", no, unix.SYS_MOVE_MOUNT, 0, 0, 0, 0, 0),
		row("mount", "mount_setattr", no, unix.SYS_MOUNT_SETATTR, 0, 0, 0, 0, 0),
		row("mount", "fsopen", no, unix.SYS_FSOPEN, "tmpfs", 0),
		row("mount", "swapon", no, unix.SYS_SWAPON, "/tmp/x", 0),
		row("mount", "quota", no, unix.SYS_QUOTACTL, 0, 0, 0, 0),

		row("trace", "PID 1", denied, unix.SYS_PTRACE, 0x4206, 1, 0, 0).unless(ofItsOwn),
		row("trace", "a host process", outcomes{unix.ESRCH, unix.EPERM}, unix.SYS_PTRACE, 0x4206, hostPID, 0, 0),
		row("trace", "memory of PID 1", append(denied, unix.ENOSYS), unix.SYS_PROCESS_VM_READV, 1, vectors(), 1, int(calls.Pointer+16), 1, 0).unless(ofItsOwn),
		row("trace", "performance counters", no, unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0),

		row("namespace", "user", no, unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		row("namespace", "mount", no, unix.SYS_UNSHARE, unix.CLONE_NEWNS),
		row("namespace", "pid", no, unix.SYS_UNSHARE, unix.CLONE_NEWPID),
		row("namespace", "network", no, unix.SYS_UNSHARE, unix.CLONE_NEWNET),
		row("namespace", "by clone", no, unix.SYS_CLONE, unix.CLONE_NEWUSER, 0, 0, 0, 0),
		row("namespace", "by clone3", no, unix.SYS_CLONE3, make([]byte, 64), 64),
		row("namespace", "enter another", no, unix.SYS_SETNS, 0, 0),

		row("become", "root", append(denied, unix.EINVAL), unix.SYS_SETRESUID, 0, 0, 0),
		row("become", "group 0", append(denied, unix.EINVAL), unix.SYS_SETRESGID, 0, 0, 0),
		row("become", "more groups", append(denied, unix.EINVAL), unix.SYS_SETGROUPS, 1, make([]byte, 4)),
		row("become", "setuid for others", denied, unix.SYS_FCHMODAT, unix.AT_FDCWD, "/workspace", 0o4755).unless(readOnly),
		row("become", "a setuid file", denied, unix.SYS_OPENAT, unix.AT_FDCWD, "/tmp/setuid-by-table", create, 0o4755),
		row("become", "host name", no, unix.SYS_SETHOSTNAME, "x", 1),
		row("become", "clock", no, unix.SYS_CLOCK_SETTIME, 0, make([]byte, 16)),
		row("become", "reboot", no, unix.SYS_REBOOT, 0, 0, 0, 0),

		row("device", "disk", denied, unix.SYS_MKNODAT, unix.AT_FDCWD, "/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))),  //nolint:gosec // small
		row("device", "memory", denied, unix.SYS_MKNODAT, unix.AT_FDCWD, "/tmp/mem", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))), //nolint:gosec // small
		row("device", "FIFO", ok, unix.SYS_MKNODAT, unix.AT_FDCWD, "/tmp/fifo", unix.S_IFIFO|0o600, 0),
		opening("device", "/dev/mem", unix.O_RDONLY, append(denied, absent...)),
		opening("device", "/dev/kmsg", unix.O_RDONLY, append(denied, absent...)),
		opening("device", "/dev/kvm", unix.O_RDWR, append(denied, absent...)),
		opening("device", "/dev/fuse", unix.O_RDWR, append(denied, absent...)),
		opening("device", "/dev/net/tun", unix.O_RDWR, append(denied, absent...)),

		row("kernel", "keyctl", no, unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, -3),
		row("kernel", "add_key", no, unix.SYS_ADD_KEY, 0, 0, 0, 0, 0),
		row("kernel", "bpf", no, unix.SYS_BPF, 0, make([]byte, 100), 100),
		row("kernel", "userfaultfd", no, unix.SYS_USERFAULTFD, 0),
		row("kernel", "io_uring", no, unix.SYS_IO_URING_SETUP, 1, make([]byte, 120)),
		row("kernel", "module", no, unix.SYS_INIT_MODULE, make([]byte, 8), 8, 0),
		row("kernel", "another kernel", no, unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xfff0),
		row("kernel", "fanotify", no, unix.SYS_FANOTIFY_INIT, 0, 0),
		row("kernel", "personality", no, unix.SYS_PERSONALITY, 0x40000),
		row("kernel", "addresses of another program", no, unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE, make([]byte, 8), 0, 0),
		row("kernel", "type into a terminal", append(no, unix.ENOTTY), unix.SYS_IOCTL, 0, unix.TIOCSTI, "x"),

		row("kernel", "line discipline", append(no, unix.ENOTTY), unix.SYS_IOCTL, 0, unix.TIOCSETD, make([]byte, 4)),
		row("kernel", "huge pages", no, unix.SYS_MMAP, 0, 2<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB, -1, 0),
		row("kernel", "a file of huge pages", no, unix.SYS_MEMFD_CREATE, "x", unix.MFD_HUGETLB),
		row("kernel", "shared huge pages", no, unix.SYS_SHMGET, 0, 2<<20, 0o4600|unix.IPC_CREAT),

		row("connect", "vsock", unheard, unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		row("connect", "kernel crypto", unheard, unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		row("connect", "packets", unheard, unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0),
		row("connect", "raw", unheard, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	}
	return append(rows, connections(port, socket)...)
}

// withinKernel reports whether a runtime's own kernel decides the result of an action. Such an action cannot affect the host. Neither the
// engine's filter nor the rules of this program apply to it.
func (a action) withinKernel() bool {
	switch a.name {
	case "kernel log", "open by handle", "raise the priority", "real-time priority", "performance counters",
		"setuid for others", "a setuid file", "open /dev/fuse, flags 0x2", "open /dev/net/tun, flags 0x2":
		return true
	}
	return a.kind == "namespace" || a.kind == "kernel"
}

// vectors returns the two arguments of process_vm_readv(2).
func vectors() (b []byte) {
	for range 2 {
		b = binary.LittleEndian.AppendUint64(b, calls.Pointer+32)
		b = binary.LittleEndian.AppendUint64(b, 8)
	}
	return b
}

// connections returns the rows that connect. Before each, all other descriptors are closed, so that the socket gets descriptor 3.
func connections(port int, abstract string) (rows []action) {
	inet := func(address string, port int) []byte {
		b := binary.LittleEndian.AppendUint16(nil, unix.AF_INET)
		b = binary.BigEndian.AppendUint16(b, uint16(port)) //nolint:gosec // a port
		b = append(b, net.ParseIP(address).To4()...)
		return append(b, make([]byte, 8)...)
	}
	local := func(path string) []byte {
		return append(binary.LittleEndian.AppendUint16(nil, unix.AF_UNIX), path...)
	}
	for _, c := range []struct {
		name    string
		family  int
		address []byte
		want    outcomes
	}{
		{"the host's loopback", unix.AF_INET, inet("127.0.0.1", port), refused},
		{"metadata", unix.AF_INET, inet("169.254.169.254", 80), outcomes{unix.ENETUNREACH}},
		{"the internet", unix.AF_INET, inet("192.0.2.1", 80), outcomes{unix.ENETUNREACH}},
		{"the host's abstract socket", unix.AF_UNIX, local("\x00" + abstract), refused},
		{"an engine", unix.AF_UNIX, local("/run/docker.sock\x00"), refused},
		{"the bus", unix.AF_UNIX, local("/run/dbus/system_bus_socket\x00"), refused},
	} {
		rows = append(rows,
			row("connect", "make room", outcomes{done}, unix.SYS_CLOSE_RANGE, 3, 1000, 0),
			row("connect", "socket for "+c.name, outcomes{done}, unix.SYS_SOCKET, c.family, unix.SOCK_STREAM, 0),
			row("connect", c.name, c.want, unix.SYS_CONNECT, 3, c.address, len(c.address)),
		)
	}
	return rows
}

// tables numbers the tables, since engines are tested in parallel, and all abstract sockets of the host share one name space.
var tables atomic.Int32

// table tries every action of the table, in a working prison or a read-only one.
func table(t *testing.T, x *box) {
	name := fmt.Sprintf("prisontest-table-%d-%d", os.Getpid(), tables.Add(1))
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rows := x.actions(os.Getpid(), listen(t, "127.0.0.1"), name)
	if x.ownKernel() {
		rows = slices.DeleteFunc(rows, action.withinKernel)
	}
	requests := make([]calls.Call, len(rows))
	for i, r := range rows {
		requests[i] = r.call
	}
	results, err := calls.Make(t.Context(), x, requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		want := r.working
		if x.spec.ReadOnly {
			want = r.looking
		}
		got := syscall.Errno(max(0, -results[i])) //nolint:gosec // not negative
		if !slices.Contains(want, got) {
			t.Errorf("%s: %s: %d (%v), want %v", r.kind, r.name, results[i], got, want)
		}
	}
	x.sh(t, "rm -f /tmp/made-by-table /tmp/fifo made-by-table")
}

// String returns the names of the results, for a test's message.
func (o outcomes) String() string {
	names := make([]string, len(o))
	for i, e := range o {
		if names[i] = unix.ErrnoName(e); e == done {
			names[i] = "success"
		}
	}
	return strings.Join(names, " or ")
}
