package native

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/prison"
)

// mapping is one line of a user namespace's map: one number inside, one outside.
type mapping struct{ inside, outside int }

// child is this program about to run again as the first process of new namespaces.
type child struct {
	role       string
	config     any
	namespaces uintptr // none: uids and gids are not used
	uids, gids []mapping
	files      []*os.File // inherited after the link, which is the first
	env        []string
	// enter, if set, puts the child into its control groups. The child is told to go on once after
	// its maps are written, and then once more.
	enter func(pid int) error
}

// announcement is what parent and child tell each other over the link: "go on" one way, "ready" or
// what went wrong the other.
type announcement struct {
	Error  string            `json:",omitempty"`
	Weaker []prison.Weakness `json:",omitempty"`
	Tap    bool              `json:",omitempty"` // the interface's other end comes with this message
	// What a launched command shows and how it fares, from init to the keeper.
	Output []byte         `json:",omitempty"`
	State  *launchedState `json:",omitempty"`
	Noted  bool           `json:",omitempty"` // the keeper's answer to the state of a new command
}

// ambient is what the first process needs until it gives everything up.
var ambient = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN,
	unix.CAP_SYS_RESOURCE, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_KILL,
}

// start starts the child, maps its ids and lets it go on. The link ends with either side.
func (c child) start() (p *os.Process, link conn, err error) {
	link, theirs, err := socketPair()
	if err != nil {
		return nil, conn{}, err
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
		return nil, conn{}, fmt.Errorf("create namespaces: %w", err)
	}
	if c.namespaces != 0 {
		if err := c.writeMaps(p.Pid); err != nil {
			return p, link, err
		}
	}
	if err := link.send(announcement{}); err != nil {
		return p, link, err
	}
	if c.enter == nil {
		return p, link, nil
	}
	// Entering a control group waits for a grace period of the kernel's; the child builds meanwhile
	// and asks only before it goes on to what must be limited.
	if err := c.enter(p.Pid); err != nil {
		return p, link, err
	}
	return p, link, link.send(announcement{})
}

func (c child) exec(link *os.File) (*os.Process, error) {
	config, err := newConfig(c.role, c.config, 1+len(c.files))
	if err != nil {
		return nil, err
	}
	defer config.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	sys := &syscall.SysProcAttr{Cloneflags: c.namespaces, Setsid: true}
	if c.namespaces != 0 {
		sys.AmbientCaps = ambient
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := leaveRealTime(); err != nil {
		return nil, err
	}
	return os.StartProcess("/proc/self/exe", []string{c.role}, &os.ProcAttr{
		Env:   append([]string{}, c.env...), // with nil it would have ours
		Files: append([]*os.File{null, null, null, config, link}, c.files...),
		Sys:   sys,
	})
}

// writeMaps fills the child's uid and gid map, see user_namespaces(7).
func (c child) writeMaps(pid int) error {
	if os.Geteuid() == 0 {
		if err := writeMap(pid, "uid_map", c.uids); err != nil {
			return err
		}
		return writeMap(pid, "gid_map", c.gids)
	}
	var wg sync.WaitGroup
	var uidErr, gidErr error
	wg.Go(func() { uidErr = runMapper("newuidmap", pid, c.uids) })
	wg.Go(func() { gidErr = runMapper("newgidmap", pid, c.gids) })
	wg.Wait()
	return errors.Join(uidErr, gidErr)
}

func writeMap(pid int, name string, m []mapping) error {
	var lines strings.Builder
	for _, x := range m {
		fmt.Fprintf(&lines, "%d %d 1\n", x.inside, x.outside)
	}
	path := fmt.Sprintf("/proc/%d/%s", pid, name)
	if err := os.WriteFile(path, []byte(lines.String()), 0); err != nil {
		return fmt.Errorf("map ids: %w", err)
	}
	return nil
}

func runMapper(tool string, pid int, m []mapping) error {
	path, err := findProgram(tool)
	if err != nil {
		return err
	}
	args := []string{strconv.Itoa(pid)}
	for _, x := range m {
		args = append(args, strconv.Itoa(x.inside), strconv.Itoa(x.outside), "1")
	}
	cmd := exec.Command(path, args...) //nolint:noctx // it writes a line and ends
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C on a terminal is for us to heed
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", tool, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// findProgram looks where systems keep their programs, and only then in PATH, which leads into no work tree (package hostenv).
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

// awaitReady waits for the child's announcement that it serves, or why it does not. On the way it may
// hand over an interface's other end, which connect gets.
func awaitReady(link conn, connect func(tap *os.File) error) (weaker []prison.Weakness, err error) {
	for {
		var a announcement
		files, err := link.recv(&a)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
			return nil, errors.New("the first process ended before it was ready")
		case err != nil:
			return nil, fmt.Errorf("wait for the first process: %w", err)
		case a.Error != "":
			return nil, errors.New(a.Error)
		case !a.Tap:
			return a.Weaker, nil
		}
		if connect == nil || len(files) != 1 {
			closeAll(files)
			return nil, errors.New("the first process hands over what nobody asked for")
		}
		if err := connect(files[0]); err != nil {
			return nil, fmt.Errorf("connect the network: %w", err)
		}
	}
}
