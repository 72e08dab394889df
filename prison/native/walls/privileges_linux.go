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
	g := uintptr(gid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, g, g, g); e != 0 {
		return fmt.Errorf("set gid %d: %w", gid, e)
	}
	return ChangeUID(uid)
}

// ChangeUID changes the uid of this thread only. The thread keeps its capabilities, see [DropPrivileges].
func ChangeUID(uid int) error {
	u := uintptr(uid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, u, u, u); e != 0 {
		return fmt.Errorf("set uid %d: %w", uid, e)
	}
	return nil
}

// InitPrivileges are the capabilities of an init with a uid of its own: it starts processes as the agent, and ends
// them. They count in its user namespace only, in which no other uids than these two exist.
var InitPrivileges = []uintptr{unix.CAP_SETUID, unix.CAP_KILL}

// DropPrivileges drops all capabilities of this thread except the given ones, which the programs it executes
// inherit, and every way for the thread and these programs to regain one. The bounding set is emptied first, since
// that needs CAP_SETPCAP.
func DropPrivileges(keep ...uintptr) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			break // beyond the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	const bits = securebitsNoRoot | securebitsNoSetuidFixup | securebitsKeepCapsLocked | securebitsNoAmbientLocked
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, bits, 0, 0, 0); err != nil {
		return fmt.Errorf("lock secure bits: %w", err)
	}
	if err := setCapabilities(keep, keep); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// RandomizeAddresses gives this thread and its children the usual personality(2). A debugger starts programs whose addresses are the same
// each time, and an airlock that is started there would inherit that. The recorder of programs recognizes a new program by its addresses.
func RandomizeAddresses() error {
	_, _, e := unix.RawSyscall(unix.SYS_PERSONALITY, 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// KeepPrivileges keeps the capabilities of [InitPrivileges] to this thread: its children have them until they
// execute a program.
func KeepPrivileges() error { return setCapabilities(InitPrivileges, nil) }

// setCapabilities sets the capabilities of this thread. A capability that is not both permitted and inheritable
// stops being ambient, too (capabilities(7)).
func setCapabilities(permitted, inheritable []uintptr) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, c := range permitted {
		data[c/32].Permitted |= 1 << (c % 32)
		data[c/32].Effective |= 1 << (c % 32)
	}
	for _, c := range inheritable {
		data[c/32].Inheritable |= 1 << (c % 32)
	}
	_, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
	if e != 0 {
		return fmt.Errorf("set capabilities: %w", e)
	}
	return nil
}
