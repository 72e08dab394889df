package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check returns an error unless this machine sends packets for an address to another machine. It asks the kernel each time (rtnetlink(7),
// RTM_GETROUTE), since this machine's own addresses can change at any moment, and are more than those of its interfaces.
func Check(a netip.Addr) error {
	kind, err := routeType(a.Unmap())
	if err != nil {
		return fmt.Errorf("route to %v: %w", a, err)
	}
	if kind != unix.RTN_UNICAST {
		return fmt.Errorf("address %v is this machine's own", a)
	}
	return nil
}

func routeType(a netip.Addr) (kind byte, err error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s)
	patience := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return 0, err
	}
	if err := unix.Sendto(s, routeRequest(a), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	buf := make([]byte, 8<<10)
	n, _, err := unix.Recvfrom(s, buf, 0)
	if err != nil {
		return 0, err
	}
	return parseRoute(buf[:n])
}

// routeRequest builds a message: struct nlmsghdr, struct rtmsg, and the destination as its only attribute.
func routeRequest(a netip.Addr) []byte {
	address := a.AsSlice()
	family := byte(unix.AF_INET6)
	if a.Is4() {
		family = unix.AF_INET
	}
	m := make([]byte, unix.SizeofNlMsghdr, 64)
	native := binary.NativeEndian
	native.PutUint16(m[4:], unix.RTM_GETROUTE)
	native.PutUint16(m[6:], unix.NLM_F_REQUEST)
	m = append(m, family, byte(len(address)*8), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	m = native.AppendUint16(m, uint16(unix.SizeofRtAttr+len(address)))
	m = native.AppendUint16(m, unix.RTA_DST)
	m = append(m, address...)
	native.PutUint32(m, uint32(len(m)))
	return m
}

// parseRoute returns the type of the route in an answer.
func parseRoute(m []byte) (kind byte, err error) {
	const typeAt = unix.SizeofNlMsghdr + int(unsafe.Offsetof(unix.RtMsg{}.Type))
	if len(m) < unix.SizeofNlMsghdr+4 {
		return 0, errors.New("short answer")
	}
	switch binary.NativeEndian.Uint16(m[4:]) {
	case unix.NLMSG_ERROR:
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(m[unix.SizeofNlMsghdr:])))
	case unix.RTM_NEWROUTE:
		if len(m) > typeAt {
			return m[typeAt], nil
		}
	}
	return 0, errors.New("unexpected answer")
}
