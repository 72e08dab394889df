package native

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// An open network is an Ethernet interface, tap(4) of this kernel, whose other end is in the hands of the
// relay on the host, see [relayMain]. These are its addresses, as every such program has them by default.
var (
	ownAddress     = address{10, 0, 2, 100}
	gatewayAddress = address{10, 0, 2, 2}
	dnsAddress     = address{10, 0, 2, 3}
	ownNetwork     = prefix{address{10, 0, 2, 0}, 24}

	// ownMAC is locally administered, and the same in every prison.
	ownMAC = [6]byte{0x52, 0x55, 10, 0, 2, 100}
)

const (
	interfaceName = "eth0"
	// interfaceMTU is what passt(1) advises: fewer, larger packets.
	interfaceMTU = 65520
	tunDevice    = "/dev/net/tun"
)

// closed returns the destinations that an open network does not lead to. The relay enforces it on every packet; the
// routes inside only make refusals quick.
func closed() []prefix {
	list := make([]prefix, len(prison.Closed))
	for i, p := range prison.Closed {
		list[i] = prefix{address(p.Address), p.Bits}
	}
	return list
}

// address is an IPv4 address. Like net, the package net/netip would come late: see [conn].
type address [4]byte

func (a address) String() string { return fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3]) }

// prefix is the addresses that have their first bits in common.
type prefix struct {
	base address
	bits int
}

func (p prefix) String() string { return fmt.Sprintf("%v/%d", p.base, p.bits) }

func (p prefix) mask() (m address) {
	binary.BigEndian.PutUint32(m[:], ^uint32(0)<<(32-p.bits))
	return m
}

func (p prefix) contains(a address) bool {
	mask := p.mask()
	for i := range a {
		if a[i]&mask[i] != p.base[i] {
			return false
		}
	}
	return true
}

// openTun opens the device that makes interfaces, while the process still is the host's user.
func (b *builder) openTun() (err error) {
	b.tap = -1
	if b.Spec.Network == prison.NetworkOpen {
		b.tap, err = unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: tunDevice, Err: err}
	}
	return nil
}

// openNetwork makes the interface and hands its other end out.
func (b *builder) openNetwork() error {
	if b.tap < 0 {
		return nil
	}
	b.lacks(prison.HostReachable, "with an open network, what the host offers on its public addresses can be reached")
	if err := makeTap(b.tap); err != nil {
		return fmt.Errorf("make interface: %w", err)
	}
	if err := configureInterface(); err != nil {
		return err
	}
	tap := os.NewFile(uintptr(b.tap), "tap")
	defer tap.Close()
	return b.link.send(announcement{Tap: true}, tap)
}

// makeTap turns a descriptor of the device into an interface's other end: Linux's
// Documentation/networking/tuntap.rst.
func makeTap(fd int) error {
	ifr, err := unix.NewIfreq(interfaceName)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
}

// configureInterface gives the interface its addresses and routes: netdevice(7), route(8).
func configureInterface() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if err := setMAC(s, ownMAC); err != nil {
		return fmt.Errorf("set hardware address: %w", err)
	}
	for _, step := range []struct {
		what    string
		request uint
		set     func(*unix.Ifreq) error
	}{
		{"set address", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ownAddress[:]) }},
		{"set netmask", unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { mask := ownNetwork.mask(); return r.SetInet4Addr(mask[:]) }},
		{"set size of packets", unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(interfaceMTU); return nil }},
		{"bring up", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		ifr, err := unix.NewIfreq(interfaceName)
		if err != nil {
			return err
		}
		if err := step.set(ifr); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		if err := unix.IoctlIfreq(s, step.request, ifr); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return addRoutes(s)
}

// hardwareRequest is struct ifreq with ifr_hwaddr, which x/sys does not offer.
type hardwareRequest struct {
	name   [unix.IFNAMSIZ]byte
	family uint16
	mac    [6]byte
	_      [16]byte
}

func setMAC(socket int, mac [6]byte) error {
	r := hardwareRequest{family: unix.ARPHRD_ETHER, mac: mac}
	copy(r.name[:], interfaceName)
	return ioctl(socket, unix.SIOCSIFHWADDR, unsafe.Pointer(&r))
}

// routeEntry is struct rtentry of linux/route.h.
type routeEntry struct {
	_                     uintptr
	dst, gateway, netmask unix.RawSockaddrInet4
	flags                 uint16
	_                     int16
	_                     uintptr
	_                     uintptr
	metric                int16
	device                *byte
	mtu, window           uintptr
	irtt                  uint16
}

func addRoutes(socket int) error {
	routes := []routeEntry{newRoute(prefix{}, gatewayAddress, unix.RTF_UP|unix.RTF_GATEWAY)}
	for _, p := range closed() {
		routes = append(routes, newRoute(p, address{}, unix.RTF_UP|unix.RTF_REJECT))
	}
	for i := range routes {
		if err := ioctl(socket, unix.SIOCADDRT, unsafe.Pointer(&routes[i])); err != nil {
			return fmt.Errorf("add route: %w", err)
		}
	}
	return nil
}

func newRoute(to prefix, via address, flags uint16) routeEntry {
	inet := func(a address) unix.RawSockaddrInet4 { return unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a} }
	return routeEntry{dst: inet(to.base), gateway: inet(via), netmask: inet(to.mask()), flags: flags}
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument)); e != 0 {
		return e
	}
	return nil
}
