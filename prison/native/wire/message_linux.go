package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/prison"
)

// maxMessage limits a message in bytes. A longer one is a mistake or an attack. execve(2) accepts 2 MiB of arguments on most systems, and
// JSON may need several bytes for each byte of an argument.
const maxMessage = 16 << 20

// maxDescriptors is the largest number of descriptors in one message.
const maxDescriptors = 4

// Send writes one message: the length, the value in JSON, and the descriptors as ancillary data. The caller's
// descriptors stay open.
func (c Conn) Send(v any, files ...*os.File) error {
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
	n, err := c.writeMessage(message, oob)
	if err == nil && n < len(message) {
		_, err = c.Write(message[n:])
	}
	return err
}

// Recv reads one message into v and returns the descriptors that came with it.
func (c Conn) Recv(v any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			CloseAll(files)
			files = nil
		}
	}()
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*maxDescriptors))
	n, oobn, flags, err := c.readMessage(head[:], oob)
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

// parseRights returns the received descriptors as files.
func parseRights(oob []byte) (files []*os.File, err error) {
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
			syscall.SetNonblock(fd, true) //nolint:errcheck // a received descriptor is open
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// CloseAll closes the files that came with a message.
func CloseAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Request is one request to init.
type Request struct {
	Kind     string    // one of the kinds below
	Argv     []string  `json:",omitempty"`
	Env      []string  `json:",omitempty"`
	Dir      string    `json:",omitempty"`
	Terminal *Terminal `json:",omitempty"`
	// Stdin, Stdout and Stderr request the caller's ends of these streams.
	Stdin, Stdout, Stderr bool
	Merged                bool     // standard error goes to the same pipe as standard output
	Paths                 []string `json:",omitempty"` // for KindWatch
	Frozen                bool     `json:",omitempty"` // the process runs while all others are frozen
	Bare                  bool     `json:",omitempty"` // without the variables of the spec
}

// Terminal requests a pseudo terminal with a size in characters, and sets TERM.
type Terminal struct {
	Rows, Cols uint16
	Term       string
}

// Kinds of requests.
const (
	KindPing   = "ping"
	KindExec   = "exec"
	KindLaunch = "launch"
	KindJoin   = "join"
	KindWatch  = "watch"
	KindTree   = "tree"
	KindFreeze = "freeze"
)

// Bytes on the connection of a KindFreeze, after the reply.
const (
	Hold  = 'h' // the processes stay frozen after the connection ends; init sends the byte back
	Thaw  = 't'
	Moved = 'm' // from init: a process went on. In answer to Hold, the processes are not held. Otherwise it comes after a Thaw.
)

// Reply is an answer of init. The first reports that the process was started, and carries descriptors; the second
// reports how the process ended.
type Reply struct {
	Status int      // exit status
	Code   string   `json:",omitempty"` // one of NotFound, NotExecutable, NotLaunched and Flooded
	Error  string   `json:",omitempty"` // the failure, in words
	Paths  []string `json:",omitempty"` // the answer to KindTree, packed as by [PackAll]
}

// Codes of failures that callers distinguish, see [Reply.Err].
const (
	NotFound      = "not found"
	NotExecutable = "not executable"
	NotLaunched   = "not launched"
	Flooded       = "flooded"
)

// Err returns the failure that a reply reports. If the reply has a code, Err returns the error of package prison
// for that code. The text comes from init, and so from inside the prison.
func (a Reply) Err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Code == NotFound:
		return fmt.Errorf("%s: %w", a.Error, prison.ErrNotFound)
	case a.Code == NotLaunched:
		return prison.ErrNotLaunched
	case a.Code == Flooded:
		return prison.ErrFlooded
	case a.Code == NotExecutable:
		return fmt.Errorf("%s: %w", a.Error, prison.ErrNotExecutable)
	}
	return errors.New(a.Error)
}

// Pass replies that a process was started, and passes descriptors. If too many descriptors are in flight, the kernel refuses them
// (unix(7), ETOOMANYREFS), and Pass replies with Flooded instead. The kernel counts them for init's uid, which is the agent's if the
// user's range has no second id.
func (c Conn) Pass(files ...*os.File) error {
	err := c.Send(Reply{}, files...)
	if errors.Is(err, unix.ETOOMANYREFS) {
		c.Send(Reply{Error: err.Error(), Code: Flooded})
	}
	return err
}

// Wiring describes a prison's interface to the process that has the other end. All addresses are IPv4. They are
// plain bytes, since package net/netip would delay a role's start, see [Conn].
type Wiring struct {
	MTU uint32
	// Inside is the address of the prison. Gateway and Resolver are addresses of the other end.
	Inside, Gateway, Resolver [4]byte
	Bits                      int     // length in bits of the prefix that these addresses share
	MAC                       [6]byte // MAC address of the other end
	Open                      bool    // all public addresses are allowed, except those that a rule denies
}
