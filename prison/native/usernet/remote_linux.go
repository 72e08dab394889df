package usernet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/git-airlock/git-airlock/prison/calls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// Descriptors of the process that makes the interface. They are numbered in the order in which [RemoteCalls] opens them.
const (
	deviceFD = 3 + iota
	configFD
	socketFD
)

// RemoteCalls returns the system calls with which a process elsewhere makes the interface in its own network
// namespace, and sends the other end over the unix socket at a path of at most 100 bytes. [wire.AwaitReady] reads it
// there as from the first process of a prison. The interface outlives the process.
//
// If again is set, the interface exists, and the process only becomes its other end. It does not set the addresses,
// because a runtime with its own network stack has taken them from the kernel. Otherwise the kernel would answer
// instead of that stack.
func RemoteCalls(socket string, again bool) []calls.Call {
	ioctlCall := func(fd uintptr, r ioctlRequest) calls.Call {
		return calls.Call{Name: r.Step, Number: unix.SYS_IOCTL, Args: [6]uintptr{fd, uintptr(r.Number), calls.Pointer}, Data: r.Argument}
	}
	list := []calls.Call{
		{Name: "close descriptors", Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{deviceFD, 1000}},
		open(Device),
		{Name: "make socket", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM}},
		ioctlCall(deviceFD, creation()),
	}
	for _, r := range configuration() {
		if !again {
			list = append(list, ioctlCall(configFD, r))
		}
	}
	address := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), socket...)
	return append(list,
		calls.Call{Name: "keep interface", Number: unix.SYS_IOCTL, Args: [6]uintptr{deviceFD, unix.TUNSETPERSIST, 1}},
		calls.Call{Name: "make socket", Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}},
		calls.Call{Name: "connect to the host", Number: unix.SYS_CONNECT, Data: append(address, 0),
			Args: [6]uintptr{socketFD, calls.Pointer, uintptr(len(address) + 1)}},
		calls.Call{Name: "send descriptor", Number: unix.SYS_SENDMSG, Args: [6]uintptr{socketFD, calls.Pointer}, Data: announcement()})
}

func open(path string) calls.Call {
	const here = ^uintptr(0) - 99 // AT_FDCWD
	return calls.Call{Name: "open " + path, Number: unix.SYS_OPENAT, Args: [6]uintptr{here, calls.Pointer, unix.O_RDWR | unix.O_NONBLOCK}, Data: append([]byte(path), 0)}
}

// announcement returns struct msghdr, with its struct iovec and struct cmsghdr, for two messages: the interface's
// other end, and the end of the announcement. See cmsg(3).
func announcement() []byte {
	var body []byte
	for _, a := range []wire.Announcement{{Tap: true}, {}} {
		text, err := json.Marshal(a)
		if err != nil {
			panic(err) // it has only plain fields
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(text))), text...) //nolint:gosec // short
	}
	rights := unix.UnixRights(deviceFD)
	const vector = calls.Pointer + 56 // the size of struct msghdr
	const control = vector + 16
	ne := binary.NativeEndian
	var m []byte
	for _, n := range []uint64{0, 0, vector, 1, control, uint64(len(rights)), 0, control + uint64(len(rights)), uint64(len(body))} {
		m = ne.AppendUint64(m, n)
	}
	return append(append(m, rights...), body...)
}

// CheckRemote returns the error of the first system call that failed.
func CheckRemote(list []calls.Call, results []int64) error {
	for i, result := range results {
		if result < 0 {
			return fmt.Errorf("%s: %w", list[i].Name, unix.Errno(-result))
		}
	}
	return nil
}
