package usernet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

const (
	// mostFiles is enough for the maximum number of connections of a prison.
	mostFiles = 4096
	// memoryEnv is the soft memory limit of Go's runtime in the network's process.
	memoryEnv = "GOMEMLIMIT=256MiB"
)

// confineConfig is the configuration of [Confine].
type confineConfig struct {
	UID, GID int
	Open     bool // see [wire.Wiring]
}

// Confine is the role of the network's process before it carries packets. The process changes to a uid that no
// account and no prison has, drops its privileges, and executes this program again. The new program has many threads,
// and Landlock and ids apply to single threads.
func Confine(config []byte, _ int) int {
	link, err := wire.AwaitParent()
	if err != nil {
		return 1
	}
	var c confineConfig
	if err = json.Unmarshal(config, &c); err == nil {
		err = c.run()
	}
	link.Send(wire.Announcement{Error: err.Error()})
	return 1
}

// run returns only on failure.
func (c confineConfig) run() error {
	unix.Umask(0o077)
	if err := os.Chdir("/"); err != nil {
		return err
	}
	program, err := walls.OpenProgram()
	if err != nil {
		return err
	}
	limits := map[int]uint64{unix.RLIMIT_NOFILE: mostFiles, unix.RLIMIT_CORE: 0}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set resource limit: %w", err)
		}
	}
	if err := c.become(); err != nil {
		return err
	}
	if err := walls.LandlockNetwork(program); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	const inherited = 2 // the link and the names
	next, err := wire.NewConfig(wire.Egress, wiring(c.Open), inherited)
	if err != nil {
		return err
	}
	if err := wire.PassOn(next, inherited); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/fd/"+strconv.Itoa(program), []string{wire.Egress}, []string{memoryEnv})
}

// become changes the ids of this process, and drops its capabilities over its user namespace.
func (c confineConfig) become() error {
	inNamespace := os.Geteuid() != 0
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(c.GID, c.GID, c.GID), syscall.Setresuid(c.UID, c.UID, c.UID)); err != nil {
		return fmt.Errorf("become a user of its own: %w", err)
	}
	if inNamespace { // on the host, root loses its capabilities with its uid
		return walls.DropPrivileges()
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
