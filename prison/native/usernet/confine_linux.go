package usernet

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// memoryEnv is the soft memory limit of Go's runtime in the network's process.
const memoryEnv = "GOMEMLIMIT=192MiB"

// confineConfig is the configuration of [Confine].
type confineConfig struct {
	UID, GID int  // of the process after [Confine]
	Open     bool // see [wire.Wiring]
}

// newConfine returns the configuration for the network of a prison.
func newConfine(s prison.Spec) (c confineConfig, err error) {
	c.Open = s.Network == prison.NetworkOpen
	c.UID, c.GID, err = walls.SecondPhantom(s.UID, s.GID)
	return c, err
}

// start starts a process that carries packets. Root confines it before it executes this program. An ordinary user can change the
// uid only in a new user namespace, where a process confines itself, see [Confine].
func (c confineConfig) start(names *os.File) carrier {
	child := walls.Child{Files: []*os.File{names}}
	if os.Geteuid() == 0 {
		program, err := walls.OpenProgram()
		if err != nil {
			return carrier{err: err}
		}
		child.Program = os.NewFile(uintptr(program), "program")
		defer child.Program.Close()
		child.Role, child.Config, child.Env = wire.Egress, wiring(c.Open), []string{memoryEnv}
		child.Confine = func() error { return c.confine(program) }
	} else {
		child.Role, child.Config, child.Env, child.Namespaces = wire.Relay, c, wire.BriefEnv, unix.CLONE_NEWUSER
		child.UIDs, child.GIDs = []walls.Mapping{{Inside: c.UID, Outside: c.UID}}, []walls.Mapping{{Inside: c.GID, Outside: c.GID}}
	}
	p, link, err := child.Start()
	return carrier{p, link, err}
}

// Confine is the role that confines the network's process of an ordinary user before it carries packets. It changes to a uid that no
// account and no prison has, drops its privileges, and executes this program again. This happens before the program has many threads,
// because ids and Landlock apply to single threads.
func Confine(config []byte, _ int) int {
	link, err := wire.AwaitParent()
	if err != nil {
		return 1
	}
	var c confineConfig
	if err = json.Unmarshal(config, &c); err == nil {
		err = c.run()
	}
	link.Send(wire.Failed(err))
	return 1
}

// run returns only on failure.
func (c confineConfig) run() error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	program, err := walls.OpenProgram()
	if err != nil {
		return err
	}
	if err := c.confine(program); err != nil {
		return err
	}
	const inherited = 2 // the link, and the file with the names
	next, err := wire.NewConfig(wire.Egress, wiring(c.Open), inherited)
	if err != nil {
		return err
	}
	if err := wire.PassOn(next, inherited); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/fd/"+strconv.Itoa(program), []string{wire.Egress}, []string{memoryEnv})
}

// confine changes the ids of this thread, and drops its capabilities over its user namespace and its access to files.
func (c confineConfig) confine(program int) error {
	inNamespace := os.Geteuid() != 0
	if err := walls.BecomePhantom(c.UID, c.GID); err != nil {
		return fmt.Errorf("become a user of its own: %w", err)
	}
	var err error
	if inNamespace { // on the host, root loses its capabilities with its uid
		err = walls.DropPrivileges()
	} else {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err != nil {
		return err
	}
	if err := walls.LandlockNetwork(program); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}
