package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is one end of a unix(7) connection that the runtime's poller serves. It is a file instead of a [net.UnixConn], since package net
// is initialised after nearly everything else in a program. The roles of a prison would have to wait for that: see [Begin], and
// TestRolesBegin.
type Conn struct{ *os.File }

// newConn takes over the descriptor of a socket.
func newConn(fd int) Conn {
	syscall.SetNonblock(fd, true) //nolint:errcheck // the descriptor is open
	return Conn{os.NewFile(uintptr(fd), "socket")}
}

// Pair returns both ends of a new connection. The second end is meant for a child process.
func Pair() (Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Conn{}, nil, fmt.Errorf("socket pair: %w", err)
	}
	return newConn(fds[0]), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// FileConn turns a socket's file into a [Conn] and closes the file.
func FileConn(f *os.File) (Conn, error) {
	defer f.Close()
	if kind, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || kind != unix.AF_UNIX {
		return Conn{}, errors.New("use socket: not a unix socket")
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Conn{}, fmt.Errorf("use socket: %w", err)
	}
	return newConn(fd), nil
}

// AwaitParent returns a connection to the parent of a process that begins in a new user namespace, after the parent has
// mapped its ids. The connection uses a duplicate, so the program that this process executes next inherits the original
// descriptor.
func AwaitParent() (Conn, error) {
	fd, err := unix.FcntlInt(ConfigFD+1, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Conn{}, fmt.Errorf("duplicate link: %w", err)
	}
	link, err := FileConn(os.NewFile(uintptr(fd), "link"))
	if err != nil {
		return Conn{}, err
	}
	// No message comes if the parent has ended, or if it could not map the ids and reports that itself.
	_, err = link.Recv(&Announcement{})
	return link, err
}

// dialUnix connects to a named socket. If the queue of the socket is full, dialUnix fails instead of waiting.
func dialUnix(path string) (Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return Conn{}, fmt.Errorf("socket: %w", err)
	}
	c := newConn(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		c.Close()
		return Conn{}, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// listenUnix creates a named socket that accepts connections.
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

// Accept waits for the next connection.
func (l Conn) Accept() (c Conn, err error) {
	err = l.wait(syscall.RawConn.Read, func(fd int) error {
		accepted, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err == nil {
			c = newConn(accepted)
		}
		return err
	})
	return c, err
}

// readMessage reads with recvmsg(2). Received descriptors are closed on exec.
func (c Conn) readMessage(p, oob []byte) (n, oobn, flags int, err error) {
	err = c.wait(syscall.RawConn.Read, func(fd int) (err error) {
		n, oobn, flags, _, err = unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	return n, oobn, flags, err
}

// writeMessage writes with sendmsg(2). It may write only a part of p.
func (c Conn) writeMessage(p, oob []byte) (n int, err error) {
	err = c.wait(syscall.RawConn.Write, func(fd int) (err error) {
		n, err = unix.SendmsgN(fd, p, oob, nil, 0)
		return err
	})
	return n, err
}

// CloseWrite closes the sending side, so that the peer reads the end of file.
func (c Conn) CloseWrite() {
	if raw, err := c.SyscallConn(); err == nil {
		// a closed connection has no peer
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) //nolint:errcheck
	}
}

// wait repeats a call while it would block or was interrupted. It stops at the deadline of the connection.
func (c Conn) wait(ready func(syscall.RawConn, func(fd uintptr) bool) error, call func(fd int) error) error {
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

// viaDirectory calls f with a short path of the socket in dir: unix(7) limits the path of a socket to 108 bytes, and
// the path of a state directory may be longer.
func viaDirectory(dir string, f func(path string) error) error {
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(d)
	return f(filepath.Join("/proc/self/fd", strconv.Itoa(d), SocketName))
}

// SocketName is the name of the prison's socket in Spec.Dir.
const SocketName = "control"

// Listen creates the prison's socket in dir, and replaces one that an earlier prison left.
func Listen(dir string) (l *os.File, err error) {
	err = viaDirectory(dir, func(path string) error {
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

// ListenIn creates a socket in a folder of its own, and the folder if it does not exist.
func ListenIn(folder string) (Conn, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return Conn{}, err
	}
	l, err := Listen(folder)
	if err != nil {
		return Conn{}, fmt.Errorf("make socket: %w", err)
	}
	return Conn{l}, nil
}

// Serve calls handle for each connection to the socket l, each in a goroutine, until accepting fails.
func (l Conn) Serve(handle func(Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go handle(c)
	}
}

// Dial connects to init of the prison whose directory is dir.
func Dial(dir string) (c Conn, err error) {
	err = viaDirectory(dir, func(path string) error {
		c, err = dialUnix(path)
		return err
	})
	return c, err
}

// Answers reports whether a process listens on the socket in dir.
func Answers(dir string) bool {
	c, err := Dial(dir)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// Gone returns a channel that is closed when the peer closes the connection. The channel first receives whether the peer has called
// HangUp.
func (c Conn) Gone() <-chan bool {
	end := make(chan bool, 1)
	go func() {
		defer close(end)
		n, _ := io.Copy(io.Discard, c)
		end <- n > 0
	}()
	return end
}

// HangUp asks the peer to hang up the process when this side is closed.
func (c Conn) HangUp() {
	c.Write([]byte{1}) //nolint:errcheck // a peer that is gone has no process
}
