package usernet

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// A network is an Ethernet interface, tap(4), in the prison. A process on the host has its other end. Programs for user-mode networks
// usually have these addresses.
var (
	ownAddress     = address{10, 0, 2, 100}
	gatewayAddress = address{10, 0, 2, 2}
	dnsAddress     = address{10, 0, 2, 3}
	ownMask        = address{255, 255, 255, 0}

	// ownMAC and gatewayMAC are locally administered, and the same in every prison.
	ownMAC     = [6]byte{0x52, 0x55, 10, 0, 2, 100}
	gatewayMAC = [6]byte{0x52, 0x55, 10, 0, 2, 2}
)

const (
	interfaceName = "eth0"
	ownBits       = 24 // length of ownMask
	// interfaceMTU is nearly the largest MTU of such an interface, so that there are fewer and larger packets.
	interfaceMTU = 65520
	// Device is the device file that makes interfaces, see [OpenDevice].
	Device = "/dev/net/tun"
)

// wiring describes the interface for the process that gets the other end.
func wiring(open bool) wire.Wiring {
	return wire.Wiring{
		MTU: interfaceMTU, Inside: ownAddress, Gateway: gatewayAddress, Resolver: dnsAddress, Bits: ownBits, MAC: gatewayMAC, Open: open,
	}
}

// Resolver returns the address of the network's name server, which asks the host's name servers.
func Resolver() string { return dnsAddress.String() }

// address is an IPv4 address. It is not of package net/netip, which would be initialised too late: see [wire.Conn].
type address [4]byte

func (a address) String() string { return fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3]) }

// OpenDevice opens the device that makes interfaces. Only a user of the host may open it.
func OpenDevice() (fd int, err error) {
	fd, err = unix.Open(Device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: Device, Err: err}
	}
	return fd, nil
}

// MakeInterface makes the interface in this process's network namespace. The device's descriptor becomes the other
// end.
func MakeInterface(device int) error {
	if err := creation().send(device); err != nil {
		return err
	}
	return configure()
}

// configure sends the requests that configure the interface.
func configure() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, r := range configuration() {
		if err := r.send(s); err != nil {
			return err
		}
	}
	return nil
}

// ioctlRequest is an ioctl(2) that makes or configures the interface. Its argument is a structure without pointers.
type ioctlRequest struct {
	Step     string // the name of the step, for errors
	Number   uint   // number of the ioctl(2)
	Argument []byte
}

func (r ioctlRequest) send(fd int) error {
	if err := ioctl(fd, r.Number, unsafe.Pointer(&r.Argument[0])); err != nil {
		return fmt.Errorf("%s: %w", r.Step, err)
	}
	return nil
}

// creation returns the request that makes the interface. The descriptor of the device becomes its other end. See Linux's
// Documentation/networking/tuntap.rst.
func creation() ioctlRequest {
	return ioctlRequest{"make interface", unix.TUNSETIFF, request(func(r *unix.Ifreq) { r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI) })}
}

// configuration returns the requests to a socket that set the addresses and routes of the interface, in this order. See netdevice(7) and route(8).
func configuration() []ioctlRequest {
	hardware := hardwareRequest{family: unix.ARPHRD_ETHER, mac: ownMAC}
	copy(hardware.name[:], interfaceName)
	everywhere := unix.RawSockaddrInet4{Family: unix.AF_INET}
	gateway := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: gatewayAddress}
	route := routeEntry{dst: everywhere, gateway: gateway, netmask: everywhere, flags: unix.RTF_UP | unix.RTF_GATEWAY}
	return []ioctlRequest{
		{"set hardware address", unix.SIOCSIFHWADDR, bytesOf(&hardware)},
		{"set address", unix.SIOCSIFADDR, request(func(r *unix.Ifreq) { r.SetInet4Addr(ownAddress[:]) })}, //nolint:errcheck // has four bytes
		{"set netmask", unix.SIOCSIFNETMASK, request(func(r *unix.Ifreq) { r.SetInet4Addr(ownMask[:]) })}, //nolint:errcheck // has four bytes
		{"set size of packets", unix.SIOCSIFMTU, request(func(r *unix.Ifreq) { r.SetUint32(interfaceMTU) })},
		{"bring up", unix.SIOCSIFFLAGS, request(func(r *unix.Ifreq) { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING) })},
		{"add route", unix.SIOCADDRT, bytesOf(&route)},
	}
}

// request returns a struct ifreq for the interface.
func request(set func(*unix.Ifreq)) []byte {
	r, err := unix.NewIfreq(interfaceName)
	if err != nil {
		panic(err) // the name is too long
	}
	set(r)
	return bytesOf(r)
}

// bytesOf returns the memory of a structure.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// IsInterface reports whether a descriptor is the other end of an interface that [creation] has made.
func IsInterface(fd int) bool {
	r, err := unix.NewIfreq("")
	return err == nil && unix.IoctlIfreq(fd, unix.TUNGETIFF, r) == nil && r.Name() == interfaceName && r.Uint16()&unix.IFF_TAP != 0
}

// hardwareRequest is struct ifreq with ifr_hwaddr, which x/sys does not have.
type hardwareRequest struct {
	name   [unix.IFNAMSIZ]byte
	family uint16
	mac    [6]byte
	_      [16]byte
}

// routeEntry is struct rtentry of linux/route.h.
type routeEntry struct {
	_                     uintptr
	dst, gateway, netmask unix.RawSockaddrInet4
	flags                 uint16
	_                     int16
	_                     uintptr
	_                     uintptr
	_                     int16 // metric
	_                     *byte // device
	_, _                  uintptr
	_                     uint16
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument)); e != 0 {
		return e
	}
	return nil
}
