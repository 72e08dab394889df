package frames

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const own, other = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01"), tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02")

// receiver takes packets of a size and the memory that they need.
type receiver struct{ got chan [2]int }

func (r receiver) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	r.got <- [2]int{p.Size(), p.MemSize() - stack.PacketBufferStructSize}
}

func (receiver) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// TestFrames checks that frames for this end or for everybody are passed on, with little more memory than they have bytes.
func TestFrames(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	const mtu = 65520
	e, err := New(fds[0], mtu, own)
	if err != nil {
		t.Fatal(err)
	}
	r := receiver{make(chan [2]int, 8)}
	if e.IsAttached() {
		t.Error("attached to nothing")
	}
	e.Attach(r)
	e.Attach(r) // has no effect
	if !e.IsAttached() {
		t.Error("not attached")
	}
	for _, c := range []struct {
		to   tcpip.LinkAddress
		size int
		want bool
	}{
		{own, 40, true},
		{other, 40, false},
		{header.EthernetBroadcastAddress, 28, true},
		{"\x01\x00\x5e\x00\x00\x01", 28, true},
		{own, -4, false}, // shorter than its header
		{own, mtu/2 - 100, true},
		{own, mtu, true},
		{own, 1, true},
	} {
		frame := make([]byte, header.EthernetMinimumSize+max(c.size, 0))
		header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: other, DstAddr: c.to, Type: header.IPv4ProtocolNumber})
		if err := unix.Sendto(fds[1], frame[:header.EthernetMinimumSize+c.size], 0, nil); err != nil {
			t.Fatal(err)
		}
		if !c.want {
			continue // the next one comes first then
		}
		select {
		case got := <-r.got:
			if size := header.EthernetMinimumSize + c.size; got[0] != size || got[1] > 2*max(size, 64) {
				t.Errorf("a frame of %d bytes: %d bytes in %d of memory", size, got[0], got[1])
			}
		case <-time.After(time.Minute):
			t.Fatalf("a frame of %d bytes was lost", c.size)
		}
	}
	writeTo(t, e, fds[1])
}

// writeTo writes a packet to the interface.
func writeTo(t *testing.T, e *Endpoint, far int) {
	t.Helper()
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: int(e.MaxHeaderLength())})
	defer p.DecRef()
	p.EgressRoute.RemoteLinkAddress, p.NetworkProtocolNumber = other, header.IPv4ProtocolNumber
	e.AddHeader(p)
	var all stack.PacketBufferList
	all.PushBack(p)
	if n, err := e.WritePackets(all); n != 1 || err != nil {
		t.Errorf("wrote %d packets: %v", n, err)
	}
	frame := make([]byte, 100)
	n, err := unix.Read(far, frame)
	if err != nil || n != header.EthernetMinimumSize || !bytes.HasPrefix(frame, []byte(other)) {
		t.Errorf("read %d bytes: % x: %v", n, frame[:max(n, 0)], err)
	}
}
