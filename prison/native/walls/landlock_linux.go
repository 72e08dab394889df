package walls

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// changes are the access rights of landlock(7) that change something, each with the version of the interface that
// introduced it. Reading and executing are not included: a prison contains no files that must be kept secret.
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

	// intoFiles are the rights that the prison has below /dev and /proc.
	intoFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// intoFolders are the rights that the prison has below its own folders: all except creating devices.
	intoFolders = ^uint64(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
)

// Landlock forbids this thread and the programs it executes to change files, except below the given folders. It is
// a second wall, in case a mount lets through something that it should not. Where the kernel has no Landlock, or
// has it disabled, the mounts are the only wall, and the result reports this as a weakness.
func Landlock(changeable ...string) (weaker []prison.Weakness, err error) {
	version, err := landlockVersion()
	if err != nil {
		weaker = append(weaker, prison.Weakness{Kind: prison.NoLandlock, Text: landlockMissing(err)})
		if looseScore() {
			weaker = append(weaker, prison.Weakness{
				Kind: prison.LooseScore, Text: "the agent can take back that its processes are killed first when memory is short",
			})
		}
		return weaker, nil
	}
	rules := map[string]uint64{"/dev": intoFiles, "/proc": intoFiles}
	if looseScore() {
		delete(rules, "/proc") // few programs write there, for example to name a thread
	}
	for _, folder := range changeable {
		rules[folder] = intoFolders
	}
	return nil, restrict(version, 0, rules)
}

// restrict forbids this thread and its children to change files, to use other named rights for files, and to reach processes outside, as far
// as this version of the interface can. The rules allow rights below a path.
func restrict(version int, others uint64, rules map[string]uint64) error {
	handled := unix.LandlockRulesetAttr{Handled_access_fs: others}
	for _, c := range changes {
		if version >= c.since {
			handled.Handled_access_fs |= c.access
		}
	}
	if version >= scopesSince {
		handled.Scoped = scopes
	}
	// The structure grows with each version. A kernel with a shorter one accepts the rest if it is zero.
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if e != 0 {
		return fmt.Errorf("make rules: %w", e)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	for path, access := range rules {
		// EBADFD means that Landlock forbids nothing there: a file in memory has no path.
		if err := addRule(ruleset, path, access&handled.Handled_access_fs); err != nil && !errors.Is(err, unix.EBADFD) {
			return fmt.Errorf("rule for %s: %w", path, err)
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

// Granted names what this kernel grants to a prison: the version of Landlock and the SHA-256 of the filter of system calls.
func Granted() map[string]string {
	granted := map[string]string{}
	if version, err := landlockVersion(); err == nil {
		granted["landlock"] = strconv.Itoa(version)
	}
	if digest := filterDigest(); digest != "" {
		granted["seccomp_sha256"] = digest
	}
	return granted
}

// landlockMissing describes what a prison lacks without Landlock.
func landlockMissing(err error) string {
	return "the kernel has no Landlock (" + err.Error() + "): read-only mounts stand alone"
}

func addRule(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
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
