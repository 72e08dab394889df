package walls

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/securebits.h: every bit with its lock. Keep-caps is locked in its off state.
const (
	securebitsNoRoot          = 1<<0 | 1<<1
	securebitsNoSetuidFixup   = 1<<2 | 1<<3
	securebitsKeepCapsLocked  = 1 << 5
	securebitsNoAmbientLocked = 1<<6 | 1<<7
)

// BecomePhantom changes this thread's ids. The thread keeps its capabilities: the kernel drops them only when a
// thread leaves uid 0 of the namespace, and uid 0 is not mapped (capabilities(7), "Effect of user ID changes"). The
// raw calls change the calling thread only.
func BecomePhantom(uid, gid int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("drop groups: %w", e)
	}
	g, u := uintptr(gid), uintptr(uid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, g, g, g); e != 0 {
		return fmt.Errorf("set gid %d: %w", gid, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, u, u, u); e != 0 {
		return fmt.Errorf("set uid %d: %w", uid, e)
	}
	return nil
}

// DropPrivileges drops all capabilities of this thread, and every way for it and the programs it executes to regain
// one. The bounding set is emptied first, since that needs CAP_SETPCAP.
func DropPrivileges() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			break // beyond the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	const bits = securebitsNoRoot | securebitsNoSetuidFixup | securebitsKeepCapsLocked | securebitsNoAmbientLocked
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, bits, 0, 0, 0); err != nil {
		return fmt.Errorf("lock secure bits: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	if e != 0 {
		return fmt.Errorf("clear capabilities: %w", e)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
