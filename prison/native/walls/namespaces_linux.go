// Package walls keeps a prison apart from its host: namespaces and phantom ids, control groups and other limits, Landlock, the system call
// filter, and dropped privileges. It reports which of these the machine lacks, and how to fix that. Begin reading at [Child.Start].
package walls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/git-airlock/git-airlock/prison/apart"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// Namespaces are the namespaces of a prison, as flags of clone(2). The control group namespace is created later,
// from within the group.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// Mapping is a line of a user namespace's map: one id inside and one outside.
type Mapping struct{ Inside, Outside int }

// Child describes how to run this program again as the first process of new namespaces.
type Child struct {
	Role       string  // name of the role
	Config     any     // the role's configuration
	Namespaces uintptr // flags of clone(2); if zero, UIDs and GIDs are not used
	UIDs, GIDs []Mapping
	Files      []*os.File // inherited descriptors that follow the link
	Env        []string
	// Confine, if set, gives up rights of a thread that then starts the child and ends. So the child lacks these rights, and this process
	// keeps them. The child executes Program, since it may be unable to open this program's file.
	Confine func() error
	Program *os.File
	// Enter, if set, moves the child into its control groups. The child waits for two messages: one when its maps are written, and one
	// after Enter.
	Enter func(pid int) error
}

// ambient are the capabilities that the first process needs until it drops all privileges.
var ambient = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW,
	unix.CAP_SYS_RESOURCE, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_KILL,
}

// Start starts the child, maps its ids and tells it to continue. The link is closed when either side ends.
func (c Child) Start() (p *os.Process, link wire.Conn, err error) {
	link, theirs, err := wire.Pair()
	if err != nil {
		return nil, wire.Conn{}, err
	}
	defer theirs.Close()
	defer func() {
		if err == nil {
			return
		}
		link.Close()
		if p != nil {
			p.Kill()
			p.Wait()
		}
	}()
	if p, err = c.exec(theirs); err != nil {
		return nil, wire.Conn{}, fmt.Errorf("create namespaces: %w", err)
	}
	if c.Namespaces != 0 {
		if err := c.writeMaps(p.Pid); err != nil {
			return p, link, err
		}
	}
	if err := link.Send(wire.Announcement{}); err != nil {
		return p, link, err
	}
	if c.Enter == nil {
		return p, link, nil
	}
	// Moving a process into a control group waits for a grace period of the kernel. The child builds meanwhile, and
	// waits only before the steps that must be limited.
	if err := c.Enter(p.Pid); err != nil {
		return p, link, err
	}
	return p, link, link.Send(wire.Announcement{})
}

func (c Child) exec(link *os.File) (*os.Process, error) {
	config, err := wire.NewConfig(c.Role, c.Config, 1+len(c.Files))
	if err != nil {
		return nil, err
	}
	defer config.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	sys := &syscall.SysProcAttr{Cloneflags: c.Namespaces}
	if c.Namespaces != 0 {
		sys.AmbientCaps = ambient
	}
	attr := &os.ProcAttr{
		Env:   append([]string{}, c.Env...), // nil would mean our own environment
		Files: append([]*os.File{null, null, null, config, link}, c.Files...),
		Sys:   sys,
	}
	if c.Confine != nil {
		return c.execConfined(attr)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := leaveRealTime(); err != nil {
		return nil, err
	}
	return apart.Start("/proc/self/exe", []string{c.Role}, attr)
}

// aboveInherited is above the numbers of all descriptors that a child inherits.
const aboveInherited = 64

// execConfined starts the child from a thread that has called Confine.
func (c Child) execConfined(attr *os.ProcAttr) (p *os.Process, err error) {
	program, err := unix.FcntlInt(c.Program.Fd(), unix.F_DUPFD_CLOEXEC, aboveInherited)
	if err != nil {
		return nil, fmt.Errorf("open program: %w", err)
	}
	defer unix.Close(program)
	attr.Dir = "/"
	OnLastThread(func() {
		if err = errors.Join(leaveRealTime(), c.Confine()); err == nil {
			p, err = apart.Start("/proc/self/fd/"+strconv.Itoa(program), []string{c.Role}, attr)
		}
	})
	return p, err
}

// OnLastThread calls a function on a thread that ends afterwards: Go ends the thread of a goroutine that has not unlocked it. The first
// thread of the process is not used, since it would not end, and its ids would be shown as those of the process.
func OnLastThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnLastThread(do) // this goroutine keeps the first thread meanwhile
			runtime.UnlockOSThread()
			return
		}
		do()
	}()
	<-done
}

// writeMaps writes the child's uid and gid maps, see user_namespaces(7).
func (c Child) writeMaps(pid int) error {
	if os.Geteuid() == 0 {
		if err := writeMap(pid, "uid_map", c.UIDs); err != nil {
			return err
		}
		return writeMap(pid, "gid_map", c.GIDs)
	}
	var wg sync.WaitGroup
	var uidErr, gidErr error
	wg.Go(func() { uidErr = runMapper("newuidmap", pid, c.UIDs) })
	wg.Go(func() { gidErr = runMapper("newgidmap", pid, c.GIDs) })
	wg.Wait()
	return errors.Join(uidErr, gidErr)
}

func writeMap(pid int, name string, m []Mapping) error {
	var lines strings.Builder
	for _, x := range m {
		fmt.Fprintf(&lines, "%d %d 1\n", x.Inside, x.Outside)
	}
	path := fmt.Sprintf("/proc/%d/%s", pid, name)
	if err := os.WriteFile(path, []byte(lines.String()), 0); err != nil {
		return fmt.Errorf("map ids: %w", err)
	}
	return nil
}

func runMapper(tool string, pid int, m []Mapping) error {
	path, err := findProgram(tool)
	if err != nil {
		return err
	}
	args := []string{strconv.Itoa(pid)}
	for _, x := range m {
		args = append(args, strconv.Itoa(x.Inside), strconv.Itoa(x.Outside), "1")
	}
	for again := true; ; again = false {
		cmd := exec.Command(path, args...) //nolint:noctx // the program writes one line and ends
		cmd.Env = []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the caller handles ^C of a terminal
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		// A ^C reaches the new process until it has left the group of the caller.
		if again && cmd.ProcessState != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			continue
		}
		return mapperError(tool, err, out)
	}
}

func mapperError(tool string, err error, said []byte) error {
	if said = bytes.TrimSpace(said); len(said) == 0 {
		return fmt.Errorf("%s prints no reason: %w", tool, err)
	}
	return fmt.Errorf("%s: %w: %s", tool, err, said)
}

// findProgram looks for a program in the system's usual folders first, and then in PATH, from which package hostenv
// has removed work trees.
func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil && filepath.IsAbs(path) {
		return path, nil
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// Help starts the child in a helper role, and waits until it has finished.
func (c Child) Help(ctx context.Context) error {
	p, link, err := c.Start()
	if err != nil {
		return err
	}
	defer p.Wait()
	defer link.Close()
	defer context.AfterFunc(ctx, func() { p.Kill() })()
	if _, err := wire.AwaitReady(link, wire.Handed{}); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}
