package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// buildConfig is all the builder knows. It holds host paths, so it must be gone (it is, with the
// memory file and the builder's memory) before anything of the agent's runs.
type buildConfig struct {
	Spec   prison.Spec
	Base   string // the working directory: a folder above all host folders, see [baseFolder]
	Shared bool   // made by Start: writable home, workspace without its host path
	// Limits by setrlimit(2), where there is no control group for them; zero: none.
	MemoryRlimit, PIDsRlimit uint64
	Weaker                   []prison.Weakness
}

// builder turns fresh namespaces into a prison. All methods run on one locked thread.
type builder struct {
	buildConfig
	link   conn
	exe    int // this program, for the last execve
	tap    int // an open network's interface, or -1
	given  given
	empty  int      // a layer without anything, see [builder.withLayers]
	mounts []string // where the host has mounted something
	weaker []prison.Weakness

	bound    []string // what is shared by bind mounts for want of overlays, see [builder.tellBound]
	boundWhy error
}

func buildMain(config []byte, inherited int) int {
	// A duplicate for the messages; the descriptor itself stays for init.
	fd, err := unix.FcntlInt(configFD+1, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 1
	}
	link, err := fileConn(os.NewFile(uintptr(fd), "link"))
	if err != nil {
		return 1
	}
	if _, err := link.recv(&announcement{}); err != nil {
		return 1 // the parent is gone, or could not map our ids and says so itself
	}
	b := builder{link: link}
	if err = json.Unmarshal(config, &b.buildConfig); err == nil {
		b.Spec, b.Base = unpackSpec(b.Spec), unpack(b.Base)
		b.weaker = b.Weaker
		if b.Shared {
			inherited-- // the lock is not for init
		}
		err = b.run(inherited)
	}
	link.send(announcement{Error: err.Error()})
	return 1
}

// run builds the prison and becomes its init; it returns only on failure.
func (b *builder) run(inherited int) (err error) {
	if err := b.endWithKeeper(); err != nil {
		return err
	}
	if b.exe, err = openProgram(); err != nil {
		return err
	}
	if err := b.leaveQuotas(); err != nil {
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
		{"resource limits", b.setRlimits},
		{"priority", b.stepBack},
		{"privileges", dropPrivileges},
		{"landlock", b.confine},
		{"system call filter", b.filterCalls},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.becomeInit(inherited)
}

// openProgram opens this program so that the phantom can execute it after the host's files are
// gone: itself where everybody may run it, else a copy in memory.
func openProgram() (int, error) {
	exe, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open program: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(exe, &st); err != nil {
		return -1, fmt.Errorf("open program: %w", err)
	}
	if st.Mode&0o005 == 0o005 {
		return exe, nil
	}
	defer unix.Close(exe)
	copied, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("copy program: %w", err)
	}
	for left := st.Size; left > 0; {
		n, err := unix.Sendfile(copied, exe, nil, int(left))
		if err != nil || n == 0 {
			return -1, fmt.Errorf("copy program: %w", errors.Join(err, errors.New("short copy")))
		}
		left -= int64(n)
	}
	return copied, unix.Fchmod(copied, 0o555)
}

// hideCgroup waits until the parent has put this process into its control group, and makes that
// the root of all it can see.
func (b *builder) hideCgroup() error {
	if _, err := b.link.recv(&announcement{}); err != nil {
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

func (b *builder) filterCalls() error {
	if filterMissing != "" {
		b.lacks(prison.NoCallFilter, filterMissing)
		return nil
	}
	return installFilter()
}

// becomeInit executes this program again as PID 1's last form. Memory, threads and descriptors of
// the builder end here; the link and the listening socket go on.
func (b *builder) becomeInit(inherited int) error {
	config, err := newConfig(roleInit, initConfig{
		Env:     packAll(environment(b.Spec)),
		Weaker:  b.weaker,
		Listens: inherited > 1,
	}, inherited)
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(config.Fd()), configFD, 0); err != nil {
		return fmt.Errorf("hand configuration on: %w", err)
	}
	if err := unix.CloseRange(uint(configFD+1+inherited), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	return b.exec()
}

// endWithKeeper lets the kernel kill this process when the keeper ends. A change of credentials makes it forget
// that, see PR_SET_PDEATHSIG(2const). Who opened a prison is no keeper: the thread that started it ends at once.
func (b *builder) endWithKeeper() error {
	if !b.Shared {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	// It may have ended before.
	link := []unix.PollFd{{Fd: configFD + 1}}
	if n, err := unix.Poll(link, 0); err == nil && n > 0 && link[0].Revents&unix.POLLHUP != 0 {
		return errors.New("the keeper is gone")
	}
	return nil
}

// initLink leads to this program until it runs.
const initLink = "/run/" + roleInit

func (b *builder) exec() error {
	// It is called as the link is by which it is found, see [becomeNameless].
	if err := os.Symlink("/proc/self/fd/"+strconv.Itoa(b.exe), initLink); err != nil {
		return fmt.Errorf("name init: %w", err)
	}
	err := syscall.Exec(initLink, []string{roleInit}, roleEnv)
	if errors.Is(err, unix.ENOENT) && b.given.root >= 0 {
		return fmt.Errorf("execute init: this program needs shared libraries that the root file system has not: %w", err)
	}
	return fmt.Errorf("execute init: %w", err)
}

// lacks notes what the prison is without.
func (b *builder) lacks(kind prison.Missing, text string) {
	b.weaker = append(b.weaker, prison.Weakness{Kind: kind, Text: text})
}
