package native

import (
	"fmt"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// changes are the accesses of landlock(7) that change something, with the version of its interface that
// brought each. Reading and executing are not among them: what is to be kept secret is not there.
var changes = []struct {
	since  int
	access uint64
}{
	{1, unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
}

const (
	scopesSince = 6
	scopes      = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL

	// intoFiles is what /dev and /proc have of them.
	intoFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// intoFolders is what the prison's own folders have: all but devices.
	intoFolders = ^uint64(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
)

// confine makes everything unchangeable but the folders that are meant to be changed, should a mount ever
// let through what it should not. It is a second wall: where the kernel has no Landlock, or has it
// switched off, the first one stands alone, and the user is told.
func (b *builder) confine() error {
	version, err := landlockVersion()
	if err != nil {
		b.lacks(prison.NoLandlock, landlockMissing(err))
		if looseScore() {
			b.lacks(prison.LooseScore, "the agent can take back that its processes are killed first when memory is short")
		}
		return nil
	}
	var handled unix.LandlockRulesetAttr
	for _, c := range changes {
		if version >= c.since {
			handled.Handled_access_fs |= c.access
		}
	}
	if version >= scopesSince {
		handled.Scoped = scopes
	}
	// The structure grows with the versions; what is zero beyond a kernel's own size does not matter.
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if e != 0 {
		return fmt.Errorf("make rules: %w", e)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	rules := map[string]uint64{"/dev": intoFiles, "/proc": intoFiles}
	if looseScore() {
		delete(rules, "/proc") // few programs write there: the names of threads, a debugger that may trace as well
	}
	for _, folder := range []string{prison.Workspace, "/" + b.home(), "/tmp", "/run", "/dev/shm"} {
		rules[folder] = intoFolders
	}
	for folder, access := range rules {
		if err := addRule(ruleset, folder, access&handled.Handled_access_fs); err != nil {
			return fmt.Errorf("rule for %s: %w", folder, err)
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return fmt.Errorf("restrict: %w", e)
	}
	return nil
}

// landlockVersion returns the version of the kernel's interface.
func landlockVersion() (int, error) {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, e
	}
	return int(version), nil
}

// landlockMissing says what a prison is without.
func landlockMissing(err error) string {
	return "the kernel has no Landlock (" + err.Error() + "): read-only mounts stand alone"
}

func addRule(ruleset int, folder string, access uint64) error {
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
