// Package inside contains the roles that run within a native prison. The builder makes the file system, puts up the walls, and becomes
// init. Init starts the agent's processes and watches files on request. Begin reading at [Build] and [Serve].
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// Config is the configuration of the builder, which [Build] unpacks. It contains host paths. The memory file and
// the builder's memory are released before any process of the agent runs, and the paths with them.
type Config struct {
	Spec    prison.Spec
	Base    string // the working directory: a folder above all folders that the prison shares
	Shared  bool   // the prison was made by Start: the home is writable, and the host path of the workspace is hidden
	InitUID int    // the uid of init, or 0 if init gets the agent's uid
	Rlimits walls.Rlimits
	Weaker  []prison.Weakness
}

// builder turns new namespaces into a prison. All methods run on one locked thread.
type builder struct {
	Config
	link    wire.Conn
	exe     int // this program, for the last execve
	tap     int // the other end of a network's interface, or -1
	sources sources
	empty   int      // an empty layer, see [builder.withLayers]
	mounts  []string // the mount points of the host
	weaker  []prison.Weakness

	noDevice error // the error of opening the TUN device, if the interface is one of a pair

	bound    []string // paths that are bind mounts instead of overlays, see [builder.tellBound]
	boundWhy error
}

// Build is the role of the builder, the first process in new namespaces. It returns only on failure, since the
// builder ends by executing this program as init.
func Build(config []byte, inherited int) int {
	link, err := wire.AwaitParent()
	if err != nil {
		return 1
	}
	b := builder{link: link}
	if err = json.Unmarshal(config, &b.Config); err == nil {
		b.Spec, b.Base = wire.UnpackSpec(b.Spec), wire.Unpack(b.Base)
		b.weaker = b.Weaker
		if b.Shared {
			inherited-- // init does not inherit the lock
		}
		err = b.run(inherited)
	}
	link.Send(wire.Failed(err))
	return 1
}

// run builds the prison and becomes its init. It returns only on failure.
func (b *builder) run(inherited int) (err error) {
	if err := b.endWithKeeper(); err != nil {
		return err
	}
	if b.exe, err = walls.OpenProgram(); err != nil {
		return err
	}
	if err := walls.LeaveQuotas(); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"file system", b.buildRoot},
		{"control group", b.hideCgroup},
		{"host name", b.setHostname},
		{"loopback", loopbackUp},
		{"network", b.openNetwork},
		{"resource limits", b.noting(b.Rlimits.Set)},
		{"priority", b.Rlimits.StepBack},
		{"personality", walls.RandomizeAddresses},
		{"privileges", b.dropPrivileges},
		{"landlock", b.noting(func() ([]prison.Weakness, error) {
			return walls.Landlock(prison.Workspace, "/"+b.home(), "/tmp", "/run", "/dev/shm")
		})},
		{"system call filter", b.noting(walls.FilterCalls)},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.becomeInit(inherited)
}

// hideCgroup waits until the parent has moved this process into its control group, and makes that group the root of
// all groups that this process can see.
func (b *builder) hideCgroup() error {
	if _, err := b.link.Recv(&wire.Announcement{}); err != nil {
		return fmt.Errorf("wait to be put into it: %w", err)
	}
	return unix.Unshare(unix.CLONE_NEWCGROUP)
}

func (b *builder) setHostname() error {
	if err := unix.Sethostname([]byte(b.Spec.Hostname)); err != nil {
		return err
	}
	return unix.Setdomainname([]byte("(none)"))
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

// noting returns a step that puts up a wall and records the wall's weaknesses.
func (b *builder) noting(putUp func() ([]prison.Weakness, error)) func() error {
	return func() error {
		weaker, err := putUp()
		b.weaker = append(b.weaker, weaker...)
		return err
	}
}

// openNetwork creates the interface of a network and sends its other end to the parent.
func (b *builder) openNetwork() (err error) {
	switch {
	case b.noDevice != nil:
		if b.tap, err = usernet.MakePair(); err == nil {
			b.weaker = append(b.weaker, usernet.Weakness(b.noDevice))
		}
	case b.tap >= 0:
		err = usernet.MakeInterface(b.tap)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	tap := os.NewFile(uintptr(b.tap), "tap")
	defer tap.Close()
	return b.link.Send(wire.Announcement{Tap: true}, tap)
}

// dropPrivileges drops what neither init nor the agent needs.
func (b *builder) dropPrivileges() error {
	if b.InitUID == 0 {
		return walls.DropPrivileges()
	}
	return walls.DropPrivileges(walls.InitPrivileges...)
}

// becomeInit executes this program again as init. The builder's memory, threads and descriptors end here, except
// the link and the listening socket.
func (b *builder) becomeInit(inherited int) error {
	agent := b.Spec.UID
	if b.InitUID == 0 {
		agent = 0 // init has that uid already
	}
	config, err := wire.NewConfig(wire.Init, initConfig{
		Env:     wire.PackAll(environment(b.Spec)),
		Given:   wire.PackAll(b.Spec.Env),
		Weaker:  b.weaker,
		Listens: inherited > 1,
		Agent:   agent,
		Record:  b.Spec.Record && b.Shared,
	}, inherited)
	if err != nil {
		return err
	}
	if err := wire.PassOn(config, inherited); err != nil {
		return err
	}
	return b.exec()
}

// endWithKeeper makes the kernel kill this process when the keeper ends. It is called again after the change of
// credentials, which clears the setting, see PR_SET_PDEATHSIG(2const). It does nothing in a prison made by Open, since
// the thread that starts such a prison ends at once.
func (b *builder) endWithKeeper() error {
	if !b.Shared {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	// The keeper may have ended before the call.
	link := []unix.PollFd{{Fd: wire.ConfigFD + 1}}
	if n, err := unix.Poll(link, 0); err == nil && n > 0 && link[0].Revents&unix.POLLHUP != 0 {
		return errors.New("the keeper has ended")
	}
	return nil
}

// initLink is a link to this program that exists until init runs.
const initLink = "/run/" + wire.Init

func (b *builder) exec() error {
	// The kernel names the process after the link, see [becomeNameless].
	if err := os.Symlink("/proc/self/fd/"+strconv.Itoa(b.exe), initLink); err != nil {
		return fmt.Errorf("name init: %w", err)
	}
	if err := restoreSignals(); err != nil {
		return fmt.Errorf("restore signals: %w", err)
	}
	if b.InitUID != 0 {
		if err := errors.Join(walls.ChangeUID(b.InitUID), b.endWithKeeper()); err != nil {
			return err
		}
	}
	err := syscall.Exec(initLink, []string{wire.Init}, wire.RoleEnv)
	if errors.Is(err, unix.ENOENT) && b.sources.root >= 0 {
		return fmt.Errorf("execute init: this program needs shared libraries that the root file system has not: %w", err)
	}
	return fmt.Errorf("execute init: %w", err)
}

// lacks records a weakness of the prison.
func (b *builder) lacks(kind prison.Missing, text string) {
	b.weaker = append(b.weaker, prison.Weakness{Kind: kind, Text: text})
}
