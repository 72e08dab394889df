package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// conn is one end of a connection, unix(7), that the runtime's poller serves. It is a file and no [net.UnixConn], since
// the net package is made ready after nearly everything else in a program, and the roles of a prison would wait for that: see
// the init function of this package, and TestRolesBegin.
type conn struct{ *os.File }

// newConn takes a socket's descriptor.
func newConn(fd int) conn {
	syscall.SetNonblock(fd, true) //nolint:errcheck // it is open
	return conn{os.NewFile(uintptr(fd), "socket")}
}

// socketPair returns both ends of a new connection; the second is for handing to a child.
func socketPair() (conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return conn{}, nil, fmt.Errorf("socket pair: %w", err)
	}
	return newConn(fds[0]), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// fileConn turns a socket's file into a conn and closes the file.
func fileConn(f *os.File) (conn, error) {
	defer f.Close()
	if kind, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || kind != unix.AF_UNIX {
		return conn{}, errors.New("use socket: not a unix socket")
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return conn{}, fmt.Errorf("use socket: %w", err)
	}
	return newConn(fd), nil
}

// dialUnix connects to a named socket of the kind SOCK_STREAM or SOCK_SEQPACKET. It does not wait for one whose queue is full.
func dialUnix(kind int, path string) (conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return conn{}, fmt.Errorf("socket: %w", err)
	}
	c := newConn(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		c.Close()
		return conn{}, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// listenUnix makes a named socket that takes connections.
func listenUnix(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l := newConn(fd).File
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// accept waits for the next connection.
func (l conn) accept() (c conn, err error) {
	err = l.wait(syscall.RawConn.Read, func(fd int) error {
		accepted, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err == nil {
			c = newConn(accepted)
		}
		return err
	})
	return c, err
}

// readMessage reads with recvmsg(2); descriptors that come are closed on exec.
func (c conn) readMessage(p, oob []byte) (n, oobn, flags int, err error) {
	err = c.wait(syscall.RawConn.Read, func(fd int) (err error) {
		n, oobn, flags, _, err = unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	return n, oobn, flags, err
}

// writeMessage writes with sendmsg(2), perhaps not all of p.
func (c conn) writeMessage(p, oob []byte) (n int, err error) {
	err = c.wait(syscall.RawConn.Write, func(fd int) (err error) {
		n, err = unix.SendmsgN(fd, p, oob, nil, 0)
		return err
	})
	return n, err
}

// closeWrite ends what the other side reads.
func (c conn) closeWrite() {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) //nolint:errcheck // a closed one has no other side
	}
}

// wait repeats a call until it neither would block nor was interrupted, or the conn's deadline is over.
func (c conn) wait(ready func(syscall.RawConn, func(fd uintptr) bool) error, call func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := ready(raw, func(fd uintptr) bool {
		for {
			if result = call(int(fd)); !errors.Is(result, unix.EINTR) {
				return !errors.Is(result, unix.EAGAIN)
			}
		}
	}); err != nil {
		return err
	}
	return result
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
func listen(dir string) (l *os.File, err error) {
	err = viaDirectory(dir, socketName, func(path string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if l, err = listenUnix(path); err != nil {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	return l, err
}

// dial connects to the init of the prison whose directory is dir.
func dial(dir string) (c conn, err error) {
	err = viaDirectory(dir, socketName, func(path string) error {
		c, err = dialUnix(unix.SOCK_STREAM, path)
		return err
	})
	return c, err
}
