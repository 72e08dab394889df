package usernet

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// A network is an Ethernet interface, tap(4) of this kernel, whose other end is in the hands of a process on
// the host. These are its addresses, as programs for networks in user space have them by default.
var (
	ownAddress     = address{10, 0, 2, 100}
	gatewayAddress = address{10, 0, 2, 2}
	dnsAddress     = address{10, 0, 2, 3}
	ownNetwork     = prefix{address{10, 0, 2, 0}, 24}

	// ownMAC and gatewayMAC are locally administered, and the same in every prison.
	ownMAC     = [6]byte{0x52, 0x55, 10, 0, 2, 100}
	gatewayMAC = [6]byte{0x52, 0x55, 10, 0, 2, 2}
)

const (
	interfaceName = "eth0"
	// interfaceMTU is the largest that is a multiple of the page size and fits: fewer, larger packets.
	interfaceMTU = 65520
	tunDevice    = "/dev/net/tun"
)

// wiring describes the interface to the process that gets its other end.
func wiring(open bool) wire.Wiring {
	return wire.Wiring{
		MTU: interfaceMTU, Inside: ownAddress, Gateway: gatewayAddress, Resolver: dnsAddress, Bits: ownNetwork.bits, MAC: gatewayMAC, Open: open,
	}
}

// Resolvers returns the content of resolv.conf(5) for a prison with an open network: its name server asks the host's.
func Resolvers() string { return "nameserver " + dnsAddress.String() + "\n" }

// address is an IPv4 address. Like net, the package net/netip would come late: see [wire.Conn].
type address [4]byte

func (a address) String() string { return fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3]) }

// prefix is the addresses that have their first bits in common.
type prefix struct {
	base address
	bits int
}

func (p prefix) mask() (m address) {
	binary.BigEndian.PutUint32(m[:], ^uint32(0)<<(32-p.bits))
	return m
}

// OpenDevice opens the device that makes interfaces, which only the host's user may.
func OpenDevice() (fd int, err error) {
	fd, err = unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: tunDevice, Err: err}
	}
	return fd, nil
}

// MakeInterface makes the interface in this process's network namespace. The device's descriptor becomes its other end.
func MakeInterface(device int) error {
	if err := makeTap(device); err != nil {
		return fmt.Errorf("make interface: %w", err)
	}
	return configureInterface()
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
	return addRoute(s)
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

func addRoute(socket int) error {
	route := newRoute(prefix{}, gatewayAddress, unix.RTF_UP|unix.RTF_GATEWAY)
	if err := ioctl(socket, unix.SIOCADDRT, unsafe.Pointer(&route)); err != nil {
		return fmt.Errorf("add route: %w", err)
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
