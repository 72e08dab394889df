package native

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A message longer than this is a mistake or an attack. execve(2) takes 2 MiB of arguments on most
// systems; JSON may need several bytes for one of theirs.
const maxMessage = 16 << 20

// maxDescriptors is how many descriptors one message carries at most.
const maxDescriptors = 4

// send writes one message, JSON with its length in front and descriptors beside it. The descriptors stay open here.
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
	n, err := c.writeMessage(message, oob)
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

// parseRights takes received descriptors.
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
