package native

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A message longer than this is a mistake or an attack. execve(2) takes 2 MiB of arguments on most
// systems; JSON may need several bytes for one of theirs.
const maxMessage = 16 << 20

// maxDescriptors is how many descriptors one message carries at most.
const maxDescriptors = 4

// conn carries JSON messages, each with its length in front, and descriptors beside them.
type conn struct{ *net.UnixConn }

// socketPair returns both ends of a new connection; the second is for handing to a child.
func socketPair() (conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return conn{}, nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	ours, err := fileConn(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		theirs.Close()
		return conn{}, nil, err
	}
	return ours, theirs, nil
}

// fileConn turns a socket's descriptor into a conn and closes the descriptor.
func fileConn(f *os.File) (conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return conn{}, fmt.Errorf("use socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return conn{}, errors.New("use socket: not a unix socket")
	}
	return conn{u}, nil
}

// send writes one message. The descriptors stay open here.
func (c conn) send(v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	message = append(message, body...)
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(message, oob, nil)
	if err == nil && n < len(message) {
		_, err = c.Write(message[n:])
	}
	return err
}

// recv reads one message into v and returns the descriptors that came with it.
func (c conn) recv(v any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*maxDescriptors))
	n, oobn, flags, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	files, err = parseRights(oob[:oobn])
	switch {
	case err != nil:
		return files, err
	case n == 0:
		return files, io.EOF
	case flags&unix.MSG_CTRUNC != 0:
		return files, errors.New("message with too many descriptors")
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return files, fmt.Errorf("message of %d bytes: too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, v)
}

// parseRights takes received descriptors; the net package received them with MSG_CMSG_CLOEXEC.
func parseRights(oob []byte) (files []*os.File, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("parse control message: %w", err)
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			// Non-blocking, so that the runtime's poller serves it and Close wakes a reader.
			syscall.SetNonblock(fd, true) //nolint:errcheck // a descriptor that has just come is open
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// viaDirectory calls f with a short path of a name in dir: unix(7) limits a socket's path to 108
// bytes, and a state directory may lie deeper.
func viaDirectory(dir, name string, f func(path string) error) error {
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(d)
	return f(filepath.Join("/proc/self/fd", strconv.Itoa(d), name))
}

// listen makes the prison's socket in dir in place of whatever an earlier one left.
func listen(dir string) (*net.UnixListener, error) {
	var l *net.UnixListener
	err := viaDirectory(dir, socketName, func(path string) (err error) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return os.Chmod(path, 0o600)
	})
	return l, err
}

// dial connects to the init of the prison whose directory is dir.
func dial(dir string) (c conn, err error) {
	err = viaDirectory(dir, socketName, func(path string) error {
		c.UnixConn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	return c, err
}
