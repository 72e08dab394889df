package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/share"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

var (
	inside   = netip.MustParseAddr("10.0.2.100")
	gateway  = netip.MustParseAddr("10.0.2.2")
	resolves = netip.MustParseAddr("10.0.2.3")
)

// fakeWorld connects to servers in this process: serve for TCP, and echo for datagrams.
type fakeWorld struct {
	mu      sync.Mutex
	reached []string
	serve   func(net.Conn)
}

func (w *fakeWorld) Connect(_ context.Context, target Target) (net.Conn, error) {
	network, name, to := target.Network, target.Name, target.To
	if name == "refused.test" || name == "" && to.Addr() != netip.MustParseAddr("192.0.2.1") {
		return nil, errors.New("refused")
	}
	if network == "udp" {
		near, far := net.Pipe()
		go echo(far)
		return near, nil
	}
	w.mu.Lock()
	w.reached = append(w.reached, name+" "+to.String())
	w.mu.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, err
	}
	go w.serve(far)
	return elsewhere{near.(*net.TCPConn)}, nil
}

// elsewhere is a connection whose remote address looks public.
type elsewhere struct{ *net.TCPConn }

func (elsewhere) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:80"))
}

func (*fakeWorld) Datagrams(_ string, to netip.AddrPort) bool { return to.Port() == 123 }

func (*fakeWorld) Exists(_ context.Context, name string) error {
	if name == "none.test" {
		return ErrNoName
	}
	return nil
}

func (*fakeWorld) Forward(_ context.Context, question []byte) ([]byte, error) {
	answer := append([]byte{}, question...)
	answer[2] |= 0x80
	return answer, nil
}

func echo(c net.Conn) {
	defer c.Close()
	io.Copy(c, c)
}

// writable returns the first order of a holder that can write.
func writable(rules control.Rules) control.Order {
	return control.Order{Rules: &rules, Written: &control.Written{}}
}

// newPair returns an engine with an open network and a stack with the prison's interface, joined by a wire.
func newPair(t testing.TB, world World) (*Engine, *stack.Stack) {
	t.Helper()
	return join(t, Settings{World: world, Open: true, First: writable(control.Rules{})})
}

func join(t testing.TB, settings Settings) (*Engine, *stack.Stack) {
	t.Helper()
	const mtu = 16 << 10
	w := Wire{MTU: mtu, Inside: inside, Gateway: gateway, Resolver: resolves, Bits: 24, MAC: [6]byte{2, 0, 0, 0, 0, 1}}
	// Packets are handed over in memory: a socket drops some where a real interface waits.
	near, far := pipe.New(tcpip.LinkAddress(w.MAC[:]), "\x02\x00\x00\x00\x00\x02", mtu)
	settings.Wire, settings.Names = w, &memory{}
	e, err := newEngine(settings, ethernet.New(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, newInside(t, ethernet.New(far))
}

// newInside returns the stack of a program inside.
func newInside(t testing.TB, link stack.LinkEndpoint) *stack.Stack {
	t.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := s.CreateNIC(nicID, link); err != nil {
		t.Fatal(err)
	}
	address := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(inside.As4()), PrefixLen: 24}
	if err := s.AddProtocolAddress(nicID, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address}, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: address.Subnet(), NIC: nicID},
		{Destination: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{}), PrefixLen: 0}.Subnet(), Gateway: tcpip.AddrFrom4(gateway.As4()), NIC: nicID},
	})
	return s
}

func full(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}
}

// patience bounds each step of a test, which takes an instant on an idle machine.
const patience = time.Minute

func dialInside(t testing.TB, s *stack.Stack, to string) (*gonet.TCPConn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return gonet.DialContextTCP(ctx, s, full(netip.MustParseAddrPort(to)), ipv4.ProtocolNumber)
}

// ask asks the resolver for the address of a name.
func ask(t testing.TB, s *stack.Stack, name string) (netip.Addr, dnsmessage.RCode) {
	t.Helper()
	to := full(netip.AddrPortFrom(resolves, 53))
	c, err := gonet.DialUDP(s, nil, &to, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(question(t, name, dnsmessage.TypeA)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	var m dnsmessage.Message
	if err != nil || m.Unpack(buf[:n]) != nil {
		t.Fatalf("%v, %x", err, buf[:n])
	}
	if len(m.Answers) != 1 {
		return netip.Addr{}, m.RCode
	}
	return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A), m.RCode
}

// TestSamePortAgain connects from one port again and again. The other side ends each connection first.
func TestSamePortAgain(t *testing.T) {
	_, s := newPair(t, &fakeWorld{serve: func(c net.Conn) { c.Close() }})
	a, _ := ask(t, s, "files.test.")
	dial := func() (*gonet.TCPConn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		return gonet.DialTCPWithBind(ctx, s, full(netip.AddrPortFrom(inside, 40000)), full(netip.AddrPortFrom(a, 80)), ipv4.ProtocolNumber)
	}
	for round := range 3 {
		c, err := dial()
		for err != nil && strings.Contains(err.Error(), "port is in use") { // until the last connection has ended
			time.Sleep(time.Millisecond)
			c, err = dial()
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("round %d: %v", round, err)
		}
		c.Close()
	}
}

// TestConnectByName resolves a name and connects to the address that the resolver returned.
func TestConnectByName(t *testing.T) {
	world := &fakeWorld{serve: echo}
	_, s := newPair(t, world)
	a, code := ask(t, s, "files.test.")
	if !synthetic.Contains(a) {
		t.Fatalf("%v, %v", a, code)
	}
	if again, _ := ask(t, s, "FILES.test."); again != a {
		t.Errorf("%v, then %v", a, again)
	}
	if _, code := ask(t, s, "none.test."); code != dnsmessage.RCodeNameError {
		t.Errorf("%v", code)
	}
	c, err := dialInside(t, s, netip.AddrPortFrom(a, 80).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than all buffers hold
	go func() {
		c.Write(sent)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back of %d, %v", len(got), len(sent), err)
	}
	if want := "files.test " + a.String() + ":80"; len(world.reached) != 1 || world.reached[0] != want {
		t.Errorf("reached %q, want %q", world.reached, want)
	}
}

// TestRefusals checks that every other address is refused, which a program sees in connect(2).
func TestRefusals(t *testing.T) {
	world := &fakeWorld{serve: echo}
	_, s := newPair(t, world)
	refused, _ := ask(t, s, "refused.test.")
	for _, to := range []string{
		refused.String() + ":443", "198.18.200.200:443", "169.254.169.254:80", "192.168.1.1:80", "10.0.2.3:80", "10.0.2.2:80",
		"192.0.2.2:80",
	} {
		if c, err := dialInside(t, s, to); err == nil {
			c.Close()
			t.Errorf("connected to %s", to)
		} else if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if c, err := dialInside(t, s, "192.0.2.1:80"); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if len(world.reached) != 1 {
		t.Errorf("reached %q", world.reached)
	}
}

// TestEnds checks that each side of a connection sees how the other one has ended it.
func TestEnds(t *testing.T) {
	served := make(chan net.Conn, 1)
	_, s := newPair(t, &fakeWorld{serve: func(c net.Conn) { served <- c }})
	open := func() (*gonet.TCPConn, net.Conn) {
		c, err := dialInside(t, s, "192.0.2.1:80")
		if err != nil {
			t.Fatal(err)
		}
		return c, <-served
	}
	for name, reset := range map[string]bool{"closed": false, "reset": true} {
		near, far := open()
		if _, err := far.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		if got := make([]byte, 4); name == "reset" { // what was not read is lost with a reset
			if _, err := io.ReadFull(near, got); err != nil {
				t.Fatal(err)
			}
			far.(*net.TCPConn).SetLinger(0)
		}
		far.Close()
		_, err := io.ReadAll(near)
		if (err != nil) != reset {
			t.Errorf("%s: %v", name, err)
		}
		near.Close()
	}
	near, far := open()
	near.Close()
	if _, err := io.ReadAll(far); err != nil {
		t.Errorf("the end from inside: %v", err)
	}
	far.Close()
}

// TestDatagrams exchanges datagrams with an echo.
func TestDatagrams(t *testing.T) {
	_, s := newPair(t, &fakeWorld{})
	to := full(netip.MustParseAddrPort("192.0.2.1:123"))
	c, err := gonet.DialUDP(s, nil, &to, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	for _, text := range []string{"one", "and another"} {
		got := make([]byte, 100)
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(got); err != nil || string(got[:n]) != text {
			t.Errorf("%q, %v", got[:n], err)
		}
	}
}

// TestOtherProtocols checks that datagrams that lead nowhere are refused at once.
func TestOtherProtocols(t *testing.T) {
	_, s := newPair(t, &fakeWorld{serve: echo})
	for _, to := range []string{"192.0.2.1:443", "10.0.2.3:5353", "198.51.100.53:53"} {
		a := full(netip.MustParseAddrPort(to))
		c, err := gonet.DialUDP(s, nil, &a, ipv4.ProtocolNumber)
		if err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); err == nil && time.Since(begun) < patience; time.Sleep(time.Millisecond) {
			_, err = c.Write([]byte("x")) // reports the error of the datagram before
		}
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", to, err)
		}
		c.Close()
	}
}

// asked is an interface in which frames wait until a stack is attached.
type asked struct {
	*channel.Endpoint
	waiting [][]byte
}

func (a *asked) Attach(receiver stack.NetworkDispatcher) {
	a.Endpoint.Attach(receiver)
	for _, frame := range a.waiting {
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
		a.InjectInbound(0, p)
		p.DecRef()
	}
}

// TestWaitingQuestion checks that an engine answers a question that waited for it, as it does when it replaces a killed process.
func TestWaitingQuestion(t *testing.T) {
	text := question(t, "files.test.", dnsmessage.TypeA)
	ip := make(header.IPv4, header.IPv4MinimumSize+header.UDPMinimumSize+len(text))
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip)), TTL: 64, Protocol: uint8(header.UDPProtocolNumber),
		SrcAddr: tcpip.AddrFrom4(inside.As4()), DstAddr: tcpip.AddrFrom4(resolves.As4()),
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	header.UDP(ip.Payload()).Encode(&header.UDPFields{SrcPort: 40000, DstPort: 53, Length: uint16(len(ip.Payload()))})
	copy(header.UDP(ip.Payload()).Payload(), text)
	frames := &asked{channel.New(64, 16<<10, "\x02\x00\x00\x00\x00\x01"), [][]byte{
		[]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x02\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x02\x0a\x00\x02\x64\x00\x00\x00\x00\x00\x00\x0a\x00\x02\x03"),
		append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00"), ip...),
	}}
	w := Wire{Inside: inside, Gateway: gateway, Resolver: resolves, Bits: 24}
	e, err := newEngine(Settings{Wire: w, World: &fakeWorld{}, Names: &memory{}, First: writable(rules(1, "files.test"))}, ethernet.New(frames))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for answered := false; !answered; {
		p := frames.ReadContext(ctx)
		if p == nil {
			t.Fatal("no answer")
		}
		answered = bytes.Contains(p.ToView().AsSlice(), text[12:]) // the question is repeated
		p.DecRef()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused != 0 {
		t.Errorf("%d refusals", e.refused)
	}
}

// TestTooManyFlows checks that the number of flows is limited, and that others can begin when some have ended.
func TestTooManyFlows(t *testing.T) {
	e, s := newPair(t, &fakeWorld{serve: echo})
	for range share.MaxFlows {
		if !e.add(&flow{}) {
			t.Fatal("too few")
		}
	}
	if c, err := dialInside(t, s, "192.0.2.1:80"); err == nil {
		c.Close()
		t.Error("connected")
	}
	e.mu.Lock()
	clear(e.flows)
	e.mu.Unlock()
	if c, err := dialInside(t, s, "192.0.2.1:80"); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

// FuzzFrames gives the stack any frame; it must still answer afterwards.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x02\x0a\x00\x02\x64\x00\x00\x00\x00\x00\x00\x0a\x00\x02\x02"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00\x45\x00\x00\x28\x00\x00\x00\x00\x40\x06\x00\x00\x0a\x00\x02\x64\xc0\x00\x02\x02\x00\x50\x00\x50\x00\x00\x00\x00\x00\x00\x00\x00\x50\x02\xff\xff\x00\x00\x00\x00"))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	mac := tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01")
	frames := channel.New(1024, 16<<10, mac)
	w := Wire{Inside: inside, Gateway: gateway, Resolver: resolves, Bits: 24}
	settings := Settings{Wire: w, World: &fakeWorld{serve: echo}, Names: &memory{}, Open: true, First: writable(control.Rules{})}
	e, err := newEngine(settings, ethernet.New(frames))
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	inject := func(frame []byte) {
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
		frames.InjectInbound(0, p)
		p.DecRef()
	}
	whoHas := []byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x02\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x02\x0a\x00\x02\x64\x00\x00\x00\x00\x00\x00\x0a\x00\x02\x02")
	f.Fuzz(func(t *testing.T, frame []byte) {
		inject(frame)
		inject(whoHas)
		for {
			p := frames.ReadContext(t.Context())
			if p == nil {
				t.Fatal("no answer")
			}
			view := p.ToView()
			sent := view.AsSlice()
			answer := len(sent) >= 42 && sent[12] == 8 && sent[13] == 6 && sent[21] == 2 && bytes.Equal(sent[28:32], []byte{10, 0, 2, 2})
			view.Release()
			p.DecRef()
			if answer {
				return
			}
		}
	})
}
