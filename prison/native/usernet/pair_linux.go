package usernet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// pairKind is the kind of links that are two connected interfaces, see veth(4). vethInfoPeer is from linux/veth.h.
	pairKind     = "veth"
	vethInfoPeer = 1
	// addressesByHand is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
	addressesByHand = 1
	// socketBuffer is the requested size of the buffers between the interface and the process with the packets. The kernel
	// gives less if its own limit is lower, and drops packets that do not fit.
	socketBuffer = 4 << 20
)

// MakePair makes the interface where the TUN device cannot be opened. The interface is one of a pair in this thread's network namespace.
// The second one is in a network namespace that no other process can join, and has no address. The result is a packet(7) socket of the
// second one, which reads and writes the same frames as the device. The thread needs the capabilities of its user namespace.
func MakePair() (other int, err error) {
	const here = "/proc/thread-self/ns/net"
	inside, err := unix.Open(here, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: here, Err: err}
	}
	defer unix.Close(inside)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("make a second network namespace: %w", err)
	}
	other, err = makeOther(inside)
	if backErr := unix.Setns(inside, unix.CLONE_NEWNET); backErr != nil {
		err = errors.Join(err, fmt.Errorf("return to the network namespace: %w", backErr))
	}
	if err == nil {
		err = configure()
	}
	if err != nil && other >= 0 {
		unix.Close(other)
	}
	return other, err
}

// makeOther makes the pair. One interface goes into the namespace of the descriptor inside, the other one stays in this thread's
// namespace. The result is the socket of the latter.
func makeOther(inside int) (socket int, err error) {
	name := attribute(unix.IFLA_IFNAME, append([]byte(interfaceName), 0))
	size := attribute(unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, interfaceMTU))
	to := attribute(unix.IFLA_NET_NS_FD, binary.NativeEndian.AppendUint32(nil, uint32(inside))) //nolint:gosec // a descriptor
	// The kernel must split packets before the interface, as it does for the device, since the socket does not show where one ends.
	single := attribute(unix.IFLA_GSO_MAX_SEGS, binary.NativeEndian.AppendUint32(nil, 1))
	peer := attribute(unix.IFLA_INFO_DATA, attribute(vethInfoPeer, linkHeader(), name, single, to))
	kind := attribute(unix.IFLA_INFO_KIND, []byte(pairKind))
	if err := requestLink(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, name, size, attribute(unix.IFLA_LINKINFO, kind, peer)); err != nil {
		return -1, fmt.Errorf("make a %s pair: %w", pairKind, err)
	}
	// Without an IPv6 address of its own, the kernel does not answer packets in this namespace.
	mode := attribute(unix.AF_INET6, attribute(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{addressesByHand}))
	if err := requestLink(unix.RTM_SETLINK, 0, name, attribute(unix.IFLA_AF_SPEC, mode)); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return -1, fmt.Errorf("refuse addresses: %w", err)
	}
	return openPacketSocket()
}

// openPacketSocket brings the interface of this thread's namespace up, and returns a socket that reads and writes all its frames.
func openPacketSocket() (socket int, err error) {
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make packet socket: %w", err)
	}
	fail := func(step string, err error) (int, error) {
		unix.Close(s)
		return -1, fmt.Errorf("%s: %w", step, err)
	}
	up := request(func(r *unix.Ifreq) { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING) })
	if err := ioctl(s, unix.SIOCSIFFLAGS, unsafe.Pointer(&up[0])); err != nil {
		return fail("bring up", err)
	}
	r, err := unix.NewIfreq(interfaceName)
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCGIFINDEX, r)
	}
	if err != nil {
		return fail("find interface", err)
	}
	for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, option, socketBuffer); err != nil {
			return fail("set size of buffer", err)
		}
	}
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	if err := unix.Bind(s, &unix.SockaddrLinklayer{Protocol: all, Ifindex: int(r.Uint32())}); err != nil {
		return fail("take packets", err)
	}
	return s, nil
}

// requestLink sends a request about a link to the kernel, and returns the kernel's answer. See rtnetlink(7).
func requestLink(what, flags uint16, attributes ...[]byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	body := linkHeader()
	for _, a := range attributes {
		body = append(body, a...)
	}
	ne := binary.NativeEndian
	m := ne.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body))) //nolint:gosec // short
	m = ne.AppendUint16(m, what)
	m = ne.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	m = ne.AppendUint64(m, 0) // number and port
	if err := unix.Sendto(s, append(m, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || ne.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel sent no answer")
	}
	if code := int32(ne.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 { //nolint:gosec // a negative errno
		return unix.Errno(-code)
	}
	return nil
}

// linkHeader returns a struct ifinfomsg for a link that is named in an attribute.
func linkHeader() []byte { return make([]byte, unix.SizeofIfInfomsg) }

// attribute returns struct rtattr with content, padded as the kernel wants it.
func attribute(kind uint16, content ...[]byte) (a []byte) {
	a = binary.NativeEndian.AppendUint16(make([]byte, 2), kind)
	for _, c := range content {
		a = append(a, c...)
	}
	binary.NativeEndian.PutUint16(a, uint16(len(a))) //nolint:gosec // short
	for len(a)%unix.RTA_ALIGNTO != 0 {
		a = append(a, 0)
	}
	return a
}
