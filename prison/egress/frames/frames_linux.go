// Package frames connects gVisor's network stack with the interface of a prison: see [Endpoint].
//
// It waits for frames in the poller of the Go runtime. gVisor's own reader waits in a system call, in which it keeps a processor of the
// runtime, and hands each packet to another goroutine, so that each request wakes several threads.
package frames

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Endpoint is an end of an interface. It reads frames itself, and writes them as package fdbased does.
type Endpoint struct {
	stack.LinkEndpoint
	file     *os.File        // of the interface
	waiting  syscall.RawConn // waits for file
	receiver atomic.Pointer[stack.NetworkDispatcher]
}

// New uses the descriptor of a TAP device, see Linux's Documentation/networking/tuntap.rst, or of a packet(7) socket. address is the
// hardware address of this end.
func New(fd int, mtu uint32, address tcpip.LinkAddress) (*Endpoint, error) {
	writer, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: mtu, EthernetHeader: true, Address: address,
		RXChecksumOffload: true, // frames come from the kernel inside: an agent has no raw sockets
		// A packet socket needs no set-up: it has the packets of one interface already, and nobody shares them.
		PreConfigured: true, IsPacketSocket: []bool{false},
		ProcessorsPerChannel: 1, // starts no goroutine
	})
	if err != nil {
		return nil, err
	}
	e := &Endpoint{LinkEndpoint: writer, file: os.NewFile(uintptr(fd), "interface")} // fdbased.New has made fd non-blocking
	e.waiting, err = e.file.SyscallConn()
	return e, err
}

// Attach implements [stack.LinkEndpoint]. The first receiver is the only one.
func (e *Endpoint) Attach(receiver stack.NetworkDispatcher) {
	if receiver != nil && e.receiver.CompareAndSwap(nil, &receiver) {
		go e.read(receiver)
	}
}

// IsAttached implements [stack.LinkEndpoint].
func (e *Endpoint) IsAttached() bool { return e.receiver.Load() != nil }

// read passes frames on until the interface is gone.
func (e *Endpoint) read(receiver stack.NetworkDispatcher) {
	own := e.LinkAddress()
	for room := buffer.NewViewSize(buffer.MaxChunkSize); ; {
		n, err := e.next(room.AsSlice())
		if err != nil {
			return
		}
		var frame *buffer.View
		if n > room.Size()/2 {
			frame, room = room, buffer.NewViewSize(buffer.MaxChunkSize)
			frame.CapLength(n)
		} else { // a copy, because the stack counts the bytes of waiting frames, not of their buffers
			frame = buffer.NewViewWithData(room.AsSlice()[:n])
		}
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(frame)})
		if e.ParseHeader(p) && isFor(own, header.Ethernet(p.LinkHeader().Slice())) {
			receiver.DeliverNetworkPacket(p.NetworkProtocolNumber, p)
		}
		p.DecRef()
	}
}

// isFor reports whether a frame is for an address, or for everybody.
func isFor(address tcpip.LinkAddress, frame header.Ethernet) bool {
	to := frame.DestinationAddress()
	return to == address || header.IsMulticastEthernetAddress(to) || to == header.EthernetBroadcastAddress
}

// next waits for a frame.
func (e *Endpoint) next(room []byte) (n int, err error) {
	failed := e.waiting.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), room); !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	return n, errors.Join(err, failed)
}
