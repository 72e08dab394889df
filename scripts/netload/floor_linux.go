package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

const (
	// datagram is what one frame of the floor carries, in an interface with packets of 65,520 bytes.
	datagram = 65000
	// headers are those of Ethernet, IPv4 and UDP in front of it.
	headers = 14 + 20 + 8
)

// floor prints how many MB a second a loop moves out of an interface and into it that only copies between frames and a connection to a
// server. No network in user space can be faster. It makes the interface in a network namespace of its own.
func floor(address string, size int64) error {
	out, err := dial(address, 's')
	if err != nil {
		return err
	}
	in, err := dial(address, 'r')
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the process ends with it
	tap, inside, err := floorInterface()
	if err != nil {
		return err
	}
	go func() {
		for buf := make([]byte, datagram); ; {
			if _, err := inside.Write(buf); err != nil {
				return
			}
		}
	}()
	buf, begun := make([]byte, headers+datagram), time.Now()
	for moved := int64(0); moved < size; {
		n, err := syscall.Read(tap, buf)
		if err != nil {
			return err
		}
		if n < headers {
			continue
		}
		if n, err = out.Write(buf[headers:n]); err != nil {
			return err
		}
		moved += int64(n)
	}
	fmt.Printf("%.0f", float64(size)/1e6/time.Since(begun).Seconds())
	inside.Close()
	frame(buf)
	begun = time.Now()
	for moved := int64(0); moved < size; {
		n, err := in.Read(buf[headers:])
		if err != nil {
			return err
		}
		if _, err := syscall.Write(tap, buf); err != nil { // always whole: a stack would fill its packets
			return err
		}
		moved += int64(n)
	}
	fmt.Printf(" %.0f\n", float64(size)/1e6/time.Since(begun).Seconds())
	return nil
}

// floorSetUp is for a shell. It gives the interface an address, and a neighbour for which nobody has to ask.
const floorSetUp = `set -e
ip link set eth0 address 52:55:0a:00:02:64 mtu 65520 up
ip addr add 10.0.2.100/24 dev eth0
ip neigh replace 10.0.2.2 lladdr 52:55:0a:00:02:02 dev eth0`

// floorInterface makes an interface in a new network namespace of this thread, and a socket inside that sends through it.
func floorInterface() (tap int, inside net.Conn, err error) {
	if err = syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return 0, nil, err
	}
	if tap, err = syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC, 0); err != nil {
		return 0, nil, err
	}
	const iffTAP, iffNoPI = 2, 0x1000 // of struct ifreq, see Linux's Documentation/networking/tuntap.rst
	var request [40]byte
	copy(request[:], "eth0")
	binary.NativeEndian.PutUint16(request[16:], iffTAP|iffNoPI)
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(tap), syscall.TUNSETIFF, uintptr(unsafe.Pointer(&request))); e != 0 {
		return 0, nil, e
	}
	shell, err := os.StartProcess("/bin/sh", []string{"sh", "-c", floorSetUp}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stderr, os.Stderr}})
	if err != nil {
		return 0, nil, err
	}
	state, err := shell.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("set up the interface: %s", state)
	}
	if err != nil {
		return 0, nil, err
	}
	var d net.Dialer
	inside, err = d.DialContext(context.Background(), "udp4", "10.0.2.2:9")
	return tap, inside, err
}

// frame writes the headers of a datagram to the inside.
func frame(buf []byte) {
	be := binary.BigEndian
	copy(buf, []byte{0x52, 0x55, 10, 0, 2, 100, 0x52, 0x55, 10, 0, 2, 2, 8, 0})
	ip := buf[14:34]
	copy(ip, []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 2, 2, 10, 0, 2, 100})
	be.PutUint16(ip[2:], datagram+28)
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	be.PutUint16(ip[10:], ^uint16(sum))
	udp := buf[34:42]
	be.PutUint16(udp[2:], 9)
	be.PutUint16(udp[4:], datagram+8)
	be.PutUint16(udp[6:], 0) // without a checksum
}
