//go:build linux && (amd64 || arm64)

package native

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// verdict runs the filter as the kernel would, for a call of a machine with all its arguments alike.
func verdict(t *testing.T, p program, arch, number, argument uint32) uint32 {
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
				accumulator = argument
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

// TestFilterOfEveryCall compares the program with the list it is made of, number by number.
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
		{unix.SYS_SOCKET, unix.AF_INET6, retNoProtocol}, // 10 is no protocol that is allowed
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
		{unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, retDone},
		{unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, retAllow},
		{unix.SYS_PRLIMIT64, unix.RLIMIT_CORE, retDone}, // its new limit is somewhere
		{unix.SYS_PRLIMIT64, unix.RLIMIT_NOFILE, retAllow},
	} {
		if got := verdict(t, p, auditArch, c.call, c.argument); got != c.want {
			t.Errorf("call %d with %#x: %#x, want %#x", c.call, c.argument, got, c.want)
		}
	}
}
