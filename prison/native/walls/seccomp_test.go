//go:build linux && (amd64 || arm64)

package walls

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// argumentsAt is the offset of the arguments in struct seccomp_data (seccomp(2)). Each has argumentSize bytes.
const argumentsAt, argumentSize = 16, 8

// verdict runs the filter as the kernel would, for a call on an architecture. Arguments that are not given have the value of the last
// one.
func verdict(t *testing.T, p program, arch, number uint32, arguments ...uint32) uint32 {
	t.Helper()
	accumulator := uint32(0)
	for at := 0; ; at++ {
		if at >= len(p) {
			t.Fatalf("the filter runs over its end for call %d", number)
		}
		in := p[at]
		holds := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch in.K {
			case dataNumber:
				accumulator = number
			case dataArch:
				accumulator = arch
			default:
				accumulator = arguments[min(int(in.K-argumentsAt)/argumentSize, len(arguments)-1)]
			}
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(in.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = accumulator == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = accumulator >= in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = accumulator&in.K != 0
		default:
			t.Fatalf("instruction %#x", in.Code)
		}
		if holds {
			at += int(in.Jt)
		} else {
			at += int(in.Jf)
		}
	}
}

// TestFilterOfEveryCall compares the filter's verdict with the list of allowed calls, for every number.
func TestFilterOfEveryCall(t *testing.T) {
	p := filter()
	t.Logf("%d instructions for %d calls", len(p), len(allowed))
	special := map[uint32]uint32{
		unix.SYS_CLONE3: retNoSys, unix.SYS_OPENAT2: retNoSys, unix.SYS_IO_SETUP: retNoSys,
		unix.SYS_CLONE: retAllow, unix.SYS_PERSONALITY: retAllow,
		unix.SYS_SOCKET: retNoFamily, unix.SYS_SOCKETPAIR: retNoFamily,
	}
	highest := slices.Max(allowed)
	for number := range uint32(1000) {
		want, known := special[number]
		switch {
		case known:
		case number > highest:
			want = retNoSys
		case slices.Contains(allowed, number):
			want = retAllow
		default:
			want = retEPERM
		}
		if got := verdict(t, p, auditArch, number, 0); got != want {
			t.Errorf("call %d: %#x, want %#x", number, got, want)
		}
		if got := verdict(t, p, unix.AUDIT_ARCH_I386, number, 0); got != retKill {
			t.Errorf("another machine's call %d: %#x", number, got)
		}
	}
	for _, number := range []uint32{0x40000000, 0x40000001, 0xffffffff} {
		if got := verdict(t, p, auditArch, number, 0); got != retNoSys {
			t.Errorf("call %#x: %#x", number, got)
		}
	}
}

func TestFilterOfArguments(t *testing.T) {
	p := filter()
	for _, c := range []struct {
		call, argument, want uint32
	}{
		{unix.SYS_CLONE, unix.CLONE_NEWUSER, retEPERM},
		{unix.SYS_CLONE, unix.CLONE_NEWNET | unix.CLONE_VM, retEPERM},
		{unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD, retAllow},
		{unix.SYS_FCHMOD, 0o4755, retEPERM},
		{unix.SYS_FCHMOD, 0o2755, retEPERM},
		{unix.SYS_FCHMOD, 0o1777, retAllow},
		{unix.SYS_FCHMODAT2, 0o6000, retEPERM},
		{unix.SYS_MKNODAT, 0o4000, retEPERM},
		{unix.SYS_SOCKET, unix.AF_UNIX, retAllow},
		{unix.SYS_SOCKET, unix.AF_INET6, retNoProtocol}, // 10 is not an allowed protocol
		{unix.SYS_SOCKET, unix.AF_VSOCK, retNoFamily},
		{unix.SYS_SOCKET, unix.AF_ALG, retNoFamily},
		{unix.SYS_SOCKET, unix.AF_PACKET, retNoFamily},
		{unix.SYS_SOCKETPAIR, unix.AF_UNIX, retAllow},
		{unix.SYS_IOCTL, unix.TIOCSTI, retEPERM},
		{unix.SYS_IOCTL, unix.TIOCLINUX, retEPERM},
		{unix.SYS_IOCTL, unix.TIOCSETD, retEPERM},
		{unix.SYS_IOCTL, unix.TIOCCONS, retEPERM},
		{unix.SYS_IOCTL, unix.TIOCGWINSZ, retAllow},
		{unix.SYS_IOCTL, unix.TIOCSCTTY, retAllow},
		{unix.SYS_IOCTL, unix.TIOCNOTTY, retAllow},
		{unix.SYS_MMAP, unix.MAP_HUGETLB, retEPERM},
		{unix.SYS_MMAP, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_STACK, retAllow},
		{unix.SYS_MEMFD_CREATE, unix.MFD_HUGETLB, retEPERM},
		{unix.SYS_MEMFD_CREATE, unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING, retAllow},
		{unix.SYS_SHMGET, 0o4600, retEPERM},
		{unix.SYS_SHMGET, 0o1600, retAllow},
		{unix.SYS_PERSONALITY, 0x40000, retEPERM},
		{unix.SYS_PERSONALITY, 8, retAllow},
		{unix.SYS_PRCTL, unix.PR_SET_MM, retEPERM},
		{unix.SYS_PRCTL, unix.PR_SET_NAME, retAllow},
		{unix.SYS_PRCTL, unix.PR_SET_VMA, retAllow},
		{unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, retDone},
		{unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, retAllow},
		{unix.SYS_PRLIMIT64, unix.RLIMIT_CORE, retDone}, // the pointer to the new limit is not nil
		{unix.SYS_PRLIMIT64, unix.RLIMIT_NOFILE, retAllow},
	} {
		if got := verdict(t, p, auditArch, c.call, c.argument); got != c.want {
			t.Errorf("call %d with %#x: %#x, want %#x", c.call, c.argument, got, c.want)
		}
	}
}

// TestSocketFamilies tries every family of sockets with every protocol. MPTCP is allowed because Go's listeners use it, and its memory
// counts as TCP's. SCTP, DCCP, UDP-Lite, raw sockets and all other families are refused.
func TestSocketFamilies(t *testing.T) {
	const families, protocols = 64, 1024
	for name, p := range map[string]struct {
		program
		unix bool
		ping bool
	}{"prison": {filter(), true, true}, "network": {networkFilter(), false, false}} {
		tried := 0
		for family := range uint32(families) {
			for protocol := range uint32(protocols) {
				ip := slices.Contains([]uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP}, protocol)
				want := retNoFamily
				switch {
				case family == unix.AF_UNIX && p.unix,
					family == unix.AF_INET && (ip || p.ping && protocol == unix.IPPROTO_ICMP),
					family == unix.AF_INET6 && (ip || p.ping && protocol == unix.IPPROTO_ICMPV6),
					family == unix.AF_NETLINK && protocol == unix.NETLINK_ROUTE:
					want = retAllow
				case family == unix.AF_INET, family == unix.AF_INET6, family == unix.AF_NETLINK:
					want = retNoProtocol
				}
				if got := verdict(t, p.program, auditArch, unix.SYS_SOCKET, family, unix.SOCK_STREAM, protocol); got != want {
					t.Errorf("%s: family %d, protocol %d: %#x, want %#x", name, family, protocol, got, want)
				}
				tried++
			}
		}
		t.Logf("%s: %d pairs", name, tried)
	}
}

// TestNetworkFilter checks that the network's process can only read, write and connect.
func TestNetworkFilter(t *testing.T) {
	p := networkFilter()
	for _, c := range []struct {
		call, argument, want uint32
	}{
		{unix.SYS_READ, 0, retAllow},
		{unix.SYS_CONNECT, 0, retAllow},
		{unix.SYS_EXECVE, 0, retEPERM},
		{unix.SYS_EXECVEAT, 0, retEPERM},
		{unix.SYS_PTRACE, 0, retEPERM},
		{unix.SYS_PROCESS_VM_READV, 0, retEPERM},
		{unix.SYS_KILL, 0, retEPERM},
		{unix.SYS_BIND, 0, retEPERM},
		{unix.SYS_LISTEN, 0, retEPERM},
		{unix.SYS_ACCEPT4, 0, retEPERM},
		{unix.SYS_IOCTL, 0, retEPERM},
		{unix.SYS_UNLINKAT, 0, retEPERM},
		{unix.SYS_SETNS, 0, retEPERM},
		{unix.SYS_CLONE3, 0, retNoSys},
		{unix.SYS_CLONE, uint32(unix.SIGCHLD), retEPERM},
		{unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD, retAllow},
		{unix.SYS_OPENAT, unix.O_RDONLY | unix.O_CLOEXEC, retAllow},
		{unix.SYS_OPENAT, unix.O_WRONLY, retEPERM},
		{unix.SYS_OPENAT, unix.O_RDWR, retEPERM},
		{unix.SYS_OPENAT, unix.O_CREAT, retEPERM},
		{unix.SYS_MMAP, unix.PROT_READ | unix.PROT_WRITE, retAllow},
		{unix.SYS_MMAP, unix.PROT_READ | unix.PROT_EXEC, retEPERM},
		{unix.SYS_MPROTECT, unix.PROT_EXEC, retEPERM},
		{unix.SYS_SOCKET, unix.AF_UNIX, retNoFamily},
		{unix.SYS_SOCKET, unix.AF_PACKET, retNoFamily},
	} {
		if got := verdict(t, p, auditArch, c.call, c.argument); got != c.want {
			t.Errorf("call %d with %#x: %#x, want %#x", c.call, c.argument, got, c.want)
		}
		if got := verdict(t, p, unix.AUDIT_ARCH_I386, c.call, c.argument); got != retKill {
			t.Errorf("another machine's call %d: %#x", c.call, got)
		}
	}
}
