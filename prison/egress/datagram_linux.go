package egress

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// maxSilence ends an exchange of datagrams, which has no end of its own (RFC 4787, REQ-5).
	maxSilence = 2 * time.Minute
	// maxDatagram is the maximum size of a datagram in bytes.
	maxDatagram = 1<<16 - 1
)

// datagrams takes the first datagram of an exchange. It reports false for one that is refused; the stack then answers "port unreachable".
func (e *Engine) datagrams(r *udp.ForwarderRequest) bool {
	id := r.ID()
	from := netip.AddrFrom4(id.RemoteAddress.As4())
	to := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	if from != e.wire.Inside {
		return false
	}
	f := e.newFlow("udp", to)
	if !e.open || e.way() != nil || !e.world.Datagrams(f.name, to) {
		e.note(f, errDatagrams)
		return false
	}
	if !e.add(f) {
		return true // the program may send it again
	}
	queue := new(waiter.Queue)
	end, err := r.CreateEndpoint(queue)
	if err != nil {
		e.remove(f)
		return false
	}
	near := gonet.NewUDPConn(queue, end)
	go func() {
		defer e.remove(f)
		defer near.Close()
		far, err := e.reach(f)
		if err != nil {
			e.note(f, err)
			return
		}
		f.exchange(near, far)
		e.journal.End(f.last())
	}()
	return true
}

// exchange copies datagrams both ways until both were silent for maxSilence, or one fails.
func (f *flow) exchange(near, far net.Conn) {
	var once sync.Once
	stop := func() {
		once.Do(func() {
			near.Close()
			far.Close()
		})
	}
	f.stopWith(stop)
	silent := time.AfterFunc(maxSilence, stop)
	defer silent.Stop()
	relay := func(to, from net.Conn, count *atomic.Int64) {
		defer stop()
		buf := make([]byte, maxDatagram)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
			count.Add(int64(n))
			silent.Reset(maxSilence)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { relay(far, near, &f.sent) })
	both.Go(func() { relay(near, far, &f.received) })
	both.Wait()
}
