package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// userNetwork is a program that turns packets into connections of its own, as any program of the user's
// could make them: a network without privileges.
type userNetwork struct {
	name  string
	start func(path string) (*exec.Cmd, frames, error)
}

// userNetworks in order of preference: the first follows the host from one network to the next, and its
// name server also answers over TCP.
var userNetworks = []userNetwork{
	{"slirp4netns", startSlirp},
	{"passt", startPasst},
}

// frames carries Ethernet frames.
type frames interface {
	// readFrame returns the next frame in buf.
	readFrame(buf []byte) (n int, err error)
	writeFrame(frame []byte) error
	io.Closer
}

// checkNetwork refuses an open network that this machine or user cannot have.
func checkNetwork(s prison.Spec) error {
	if s.Network != prison.NetworkOpen {
		return nil
	}
	if len(findUserNetworks()) == 0 {
		return unavailable("an open network needs slirp4netns or passt, and neither is installed",
			installation(map[string]string{
				"apt-get": "slirp4netns", "dnf": "slirp4netns", "zypper": "slirp4netns", "pacman": "slirp4netns", "apk": "slirp4netns",
			})...)
	}
	f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	reason := "an open network needs " + tunDevice + ": " + err.Error()
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return unavailable(reason, "sudo modprobe tun")
	case errors.Is(err, os.ErrPermission):
		return unavailable(reason, "sudo chmod 0666 "+tunDevice)
	}
	return unavailable(reason)
}

// findUserNetworks returns the paths of those that are installed, by their names.
func findUserNetworks() map[string]string {
	found := map[string]string{}
	for _, n := range userNetworks {
		if path, err := findProgram(n.name); err == nil {
			found[n.name] = path
		}
	}
	return found
}

// startSlirp starts slirp4netns(1). Its socket needs a name, for a moment.
func startSlirp(path string) (*exec.Cmd, frames, error) {
	dir, err := os.MkdirTemp("", "net-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	cmd := helperCommand(path, "--target-type=bess", "--disable-host-loopback", "--enable-seccomp",
		fmt.Sprintf("--mtu=%d", interfaceMTU), "--cidr="+ownNetwork.String(), socket)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(helperPatience); ; time.Sleep(2 * time.Millisecond) {
		c, err := dialUnix(unix.SOCK_SEQPACKET, socket)
		if err == nil {
			return cmd, packets{c}, nil
		}
		if time.Now().After(deadline) || !alive(cmd) {
			return nil, nil, failed(cmd, err)
		}
	}
}

// startPasst starts passt(1) on one end of a socket pair, with which it ends.
func startPasst(path string) (*exec.Cmd, frames, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	cmd := helperCommand(path, "--foreground", "--quiet", "--stderr", "--ipv4-only", "--no-map-gw", "--no-dhcp",
		"--fd", "3", fmt.Sprintf("--mtu=%d", interfaceMTU), "--address", ownAddress.String(),
		fmt.Sprintf("--netmask=%d", ownNetwork.bits), "--gateway", gatewayAddress.String(),
		"--dns-forward", dnsAddress.String())
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, nil, err
	}
	return cmd, stream{ours}, nil
}

// helperCommand prepares a program that dies with this one, in a session of its own, knowing nothing.
func helperCommand(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:noctx // its caller ends it
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + searchPath}
	cmd.Stderr = &prison.Capped{Max: 2048}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	return cmd
}

func alive(cmd *exec.Cmd) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == 0
}

// failed ends a program and returns what it said.
func failed(cmd *exec.Cmd, cause error) error {
	cmd.Process.Kill()
	if err := cmd.Wait(); cause == nil {
		cause = err
	}
	said, _ := cmd.Stderr.(*prison.Capped)
	var lines []string
	for line := range strings.Lines(said.String()) {
		// What passt says when there is no system log.
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, "to syslog") {
			lines = append(lines, line)
		}
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), cause, strings.Join(lines, "; "))
}

// packets has one frame in each message of a socket.
type packets struct{ conn }

func (p packets) readFrame(buf []byte) (int, error) { return p.Read(buf) }
func (p packets) writeFrame(frame []byte) error     { _, err := p.Write(frame); return err }

// stream has every frame after its length, as QEMU's "-netdev stream" has.
type stream struct{ conn }

func (s stream) readFrame(buf []byte) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > len(buf) {
		return 0, fmt.Errorf("frame of %d bytes", n)
	}
	return io.ReadFull(s, buf[:n])
}

func (s stream) writeFrame(frame []byte) error {
	message := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	_, err := s.Write(append(message, frame...))
	return err
}
