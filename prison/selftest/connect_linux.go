package selftest

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison/calls"

	"golang.org/x/sys/unix"
)

// socketAddress is a struct sockaddr_in.
func socketAddress(host string, port int) []byte {
	address := binary.LittleEndian.AppendUint16(nil, unix.AF_INET)
	address = binary.BigEndian.AppendUint16(address, uint16(port)) //nolint:gosec // a port
	address = append(address, netip.MustParseAddr(host).AsSlice()...)
	return append(address, make([]byte, 8)...)
}

// waitFor waits for events on a descriptor, for at most a time.
func waitFor(fd, events uint32, most time.Duration) calls.Call {
	// struct pollfd, and struct timespec 8 bytes later.
	wait := binary.LittleEndian.AppendUint32(nil, fd)
	wait = binary.LittleEndian.AppendUint32(wait, events)
	wait = binary.LittleEndian.AppendUint64(wait, uint64(most/time.Second))
	wait = binary.LittleEndian.AppendUint64(wait, uint64(most%time.Second))
	return calls.Call{Number: unix.SYS_PPOLL, Args: [6]uintptr{calls.Pointer, 1, calls.Pointer + 8}, Data: wait}
}

// tryDatagram sends a datagram. An answer within a second breaks the promise, an error does not.
func tryDatagram(ctx context.Context, s Subject, host string, port int) (seen, broken string, err error) {
	address := socketAddress(host, port)
	const scratch = calls.Pointer + 1024
	results, err := calls.Make(ctx, s.Prison, []calls.Call{
		{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}},
		{Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}},
		{Number: unix.SYS_CONNECT, Args: [6]uintptr{3, calls.Pointer, uintptr(len(address))}, Data: address},
		{Number: unix.SYS_SENDTO, Args: [6]uintptr{3, calls.Pointer, 1}, Data: []byte("x")},
		waitFor(3, unix.POLLIN, time.Second),
		{Number: unix.SYS_RECVFROM, Args: [6]uintptr{3, scratch, 512}},
	})
	if err != nil {
		return "", "", untried(ctx, err)
	}
	for _, result := range []int64{results[1], results[2], results[3], results[5]} {
		if result < 0 {
			return syscall.Errno(-result).Error(), "", nil
		}
	}
	return "", fmt.Sprintf("an answer from %s, port %d", host, port), nil
}

// tryConnect tries to connect by TCP. Success within a second breaks the promise.
func tryConnect(ctx context.Context, s Subject, host string, port int) (seen, broken string, err error) {
	address := socketAddress(host, port)
	connect := calls.Call{Number: unix.SYS_CONNECT, Args: [6]uintptr{3, calls.Pointer, uintptr(len(address))}, Data: address}
	results, err := calls.Make(ctx, s.Prison, []calls.Call{
		{Number: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{3, 1000}}, // so that the socket gets descriptor 3
		{Number: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_NONBLOCK}},
		connect,
		waitFor(3, unix.POLLOUT, time.Second),
		connect, // returns the result of the first connect, see connect(2)
	})
	if err != nil {
		return "", "", untried(ctx, err)
	}
	if results[1] != 3 {
		return "", "", &untriedError{reason: fmt.Sprintf("socket: %d", results[1])}
	}
	errno := syscall.Errno(max(0, -results[4])) //nolint:gosec // not negative
	if results[2] == 0 || errno == 0 || errno == unix.EISCONN {
		return "", fmt.Sprintf("connected to %s, port %d", host, port), nil
	}
	return errno.Error(), "", nil
}
