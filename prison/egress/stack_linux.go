package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/frames"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
	"github.com/git-airlock/git-airlock/prison/egress/share"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nicID = 1
	// maxConnecting is how many connections may be still connecting at a time.
	maxConnecting = 64
	// maxQuestions is how many DNS questions are looked up at a time.
	maxQuestions = 64
	// smallBuffer is the initial buffer of a connection each way, in bytes.
	smallBuffer = 256 << 10
)

// Wire describes the engine's end of a prison's interface.
type Wire struct {
	FD  int // of the TAP device, see Linux's Documentation/networking/tuntap.rst, or a packet(7) socket
	MTU uint32
	// Inside is the prison's own address, Gateway and Resolver are addresses of this end. All are IPv4.
	Inside, Gateway, Resolver netip.Addr
	// Bits is the prefix length of the network of these three addresses.
	Bits int
	MAC  [6]byte // of this end
}

// Target is the destination of a connection.
type Target struct {
	Network string         // "tcp" or "udp"
	Name    string         // canonical; empty for an address
	To      netip.AddrPort // as seen inside; the address is used only without a name
	Rules   *Policy        // allow the connection, and may open private addresses
	Keep    netip.Addr     // an earlier connection led there, see [Internet.Connect]; invalid for none
	Way     *upstream.Way  // the proxy to go through; nil for none
}

// World makes the connections of a prison and looks up its names.
type World interface {
	// Connect connects to a target. The error is a [*ClosedError] if an address may not be connected to; then nothing was sent to it.
	Connect(ctx context.Context, t Target) (net.Conn, error)
	// Datagrams reports whether datagrams to a destination may be sent. It does not wait for a look-up.
	Datagrams(name string, to netip.AddrPort) bool
	// Exists returns [ErrNoName] if a name does not exist, and another error if the look-up fails.
	Exists(ctx context.Context, name string) error
	// Forward sends a DNS question to a resolver, and returns the answer. The question does not ask for an address.
	Forward(ctx context.Context, question []byte) ([]byte, error)
}

// Engine is a TCP/IP stack at the other end of a prison's interface.
type Engine struct {
	wire    Wire
	world   World
	open    bool          // every public address is allowed
	idle    time.Duration // how long a connection may be silent both ways
	policy  atomic.Pointer[Policy]
	journal *pending.Queue
	dirty   chan struct{} // buffers one value: the state has changed
	urgent  chan struct{} // buffers one value: a refusal waits for the state
	counted chan struct{} // buffers one value: a request that a limit counts, or a question of the holder, waits for the state
	asked   atomic.Uint64 // the last question of the holder
	known   *names        // that rules allow
	others  *names        // that no rule allows
	stack   *stack.Stack
	trusted authority.Set // for the servers in whose place the engine answers
	roots   func() (*x509.CertPool, error)
	// credentials has the values that requests get. stale receives the names of credentials that a server has refused.
	credentials credential.Store
	proxy       upstream.Access
	shares      share.Shares
	stale       chan string
	ctx         context.Context // ends with the engine
	end         context.CancelFunc

	mu                sync.Mutex
	flows             map[*flow]struct{}
	lastFlow          uint64
	admitted, refused uint64
	expiry            *time.Timer // when the next rule ends
	lifetimes         control.Lifetimes
	rules             control.Rules
	pool              *x509.CertPool  // see machineRoots
	pooled            string          // the certificates of the rules that pool has
	failed            string          // why newer rules are not in force
	closed            int             // connections that the rules in force ended
	attended          bool            // a holder takes reports
	awaited           []chan struct{} // each is closed when the holder has written the next state
	waiting           int             // refusals and requests that wait for a state
}

// Settings describe a prison's network.
type Settings struct {
	Wire  Wire
	World World
	// Names has the names to which an earlier engine gave addresses.
	Names NameFile
	// Open allows every public address. Names are then looked up when a program asks for them.
	Open bool
	// First is the first order of the holder: the rules, and whether records can be written.
	First control.Order
}

// NewEngine connects a prison's interface with the world.
func NewEngine(s Settings) (*Engine, error) {
	link, err := frames.New(s.Wire.FD, s.Wire.MTU, tcpip.LinkAddress(s.Wire.MAC[:]))
	if err != nil {
		return nil, fmt.Errorf("use interface: %w", err)
	}
	return newEngine(s, link)
}

func newEngine(s Settings, link stack.LinkEndpoint) (*Engine, error) {
	e := &Engine{
		wire: s.Wire, world: s.World, open: s.Open, journal: pending.New(time.Now), dirty: make(chan struct{}, 1), urgent: make(chan struct{}, 1), counted: make(chan struct{}, 1), stale: make(chan string, 1), flows: map[*flow]struct{}{},
		idle: maxIdle,
	}
	e.roots = e.machineRoots
	var err error
	if a := s.First.Authorities; a != nil {
		if err = e.trusted.Load(a.All); err != nil {
			return nil, err
		}
	}
	if e.known, err = loadNames(s.Names, firstSlot, maxNames); err != nil {
		return nil, err
	}
	if e.others, err = loadNames(s.Names, firstOther, maxOthers); err != nil {
		return nil, err
	}
	e.policy.Store(&Policy{Open: e.open})
	e.obey(s.First)
	e.ctx, e.end = context.WithCancel(context.Background())
	waiting := &detached{LinkEndpoint: link}
	if e.stack, err = e.newStack(waiting); err != nil {
		return nil, err
	}
	if err := e.serveNames(); err != nil {
		e.Close()
		return nil, err
	}
	link.Attach(waiting.receiver)
	return e, nil
}

// machineRoots returns the authorities of servers that this machine and its user trust. It parses certificates only
// once, and again after rules with others.
func (e *Engine) machineRoots() (*x509.CertPool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pool != nil && e.pooled == e.rules.Added {
		return e.pool, nil
	}
	pool, err := x509.SystemCertPool() // a copy
	if err == nil {
		pool.AppendCertsFromPEM([]byte(e.rules.Added))
		e.pool, e.pooled = pool, e.rules.Added
	}
	return pool, err
}

// A detached link only stores its receiver, so that no packet is read until the engine can answer. Otherwise, a question that waits in the
// interface while a killed process is replaced would be lost, or recorded as a refusal of the resolver's own address.
type detached struct {
	stack.LinkEndpoint
	receiver stack.NetworkDispatcher
}

// Attach implements [stack.LinkEndpoint].
func (d *detached) Attach(receiver stack.NetworkDispatcher) { d.receiver = receiver }

// newStack makes a stack that takes packets for every address. It answers ARP requests for its own two addresses only.
func (e *Engine) newStack(link stack.LinkEndpoint) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: smallBuffer, Max: share.Large.TCP}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: smallBuffer, Max: share.Large.TCP}
	wait := tcpip.TCPTimeWaitTimeoutOption(timeWait)
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &receive, &send, &wait} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("set up TCP: %v", err)
		}
	}
	forwarder := tcp.NewForwarder(s, 0, maxConnecting, e.connect)
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, e.datagrams).HandlePacket)
	if err := s.CreateNIC(nicID, link); err != nil {
		return nil, fmt.Errorf("use interface: %v", err)
	}
	for _, a := range []netip.Addr{e.wire.Gateway, e.wire.Resolver} {
		with := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(a.As4()), PrefixLen: e.wire.Bits}
		address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: with}
		if err := s.AddProtocolAddress(nicID, address, stack.AddressProperties{}); err != nil {
			return nil, fmt.Errorf("set address: %v", err)
		}
	}
	inside, err := tcpip.NewSubnet(tcpip.AddrFrom4(e.wire.Inside.As4()), tcpip.MaskFrom("\xff\xff\xff\xff"))
	if err != nil {
		return nil, fmt.Errorf("set route: %w", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: inside, NIC: nicID}}) // the prison is the only other machine
	if err := s.SetPromiscuousMode(nicID, true); err != nil {
		return nil, fmt.Errorf("take all packets: %v", err)
	}
	if err := s.SetSpoofing(nicID, true); err != nil {
		return nil, fmt.Errorf("answer for all addresses: %v", err)
	}
	return s, nil
}

// timeWait is how long the address of a flow that ended here first is kept, RFC 9293 TIME-WAIT. Meanwhile the stack answers no new
// connection from the same port. The usual minute is for packets that a network delays, and this link delays none.
const timeWait = 200 * time.Millisecond

// Close ends all flows. It does not close the stack, since that waits for the reader of the interface, which may wait for a lock of the
// stack.
func (e *Engine) Close() {
	e.end()
	e.mu.Lock()
	for f := range e.flows {
		f.abort()
	}
	e.mu.Unlock()
}

func (e *Engine) resolver() resolver {
	if e.open {
		return resolver{address: e.addressFor, forward: e.world.Forward}
	}
	return resolver{address: e.addressFor}
}

// addressFor returns the address that a name has inside. In an open network, the name must exist. Otherwise the name is not looked up, and
// every name has an address, so that an attempt to connect shows its name.
func (e *Engine) addressFor(ctx context.Context, name string) (netip.Addr, error) {
	if e.open {
		if err := e.world.Exists(ctx, name); err != nil {
			return netip.Addr{}, err
		}
	}
	if isLoopback(name) {
		return netip.Addr{}, ErrNoName
	}
	if e.policy.Load().Covers(name) {
		return e.known.address(name)
	}
	return e.others.address(name)
}

// nameOf returns the name that an address inside stands for, empty if there is none.
func (e *Engine) nameOf(a netip.Addr) string {
	if name := e.known.name(a); name != "" {
		return name
	}
	return e.others.name(a)
}

// serveNames answers DNS questions that come as datagrams.
func (e *Engine) serveNames() error {
	const port = 53
	local := tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(e.wire.Resolver.As4()), Port: port}
	c, err := gonet.DialUDP(e.stack, &local, nil, ipv4.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("serve names: %w", err)
	}
	context.AfterFunc(e.ctx, func() { c.Close() })
	busy := make(chan struct{}, maxQuestions)
	go func() {
		buf := make([]byte, maxQuestion+1)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				if e.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				continue
			}
			if n > maxQuestion || !e.fromInside(from) {
				continue
			}
			question := append([]byte{}, buf[:n]...)
			select {
			case busy <- struct{}{}:
			default:
				continue // the program asks again
			}
			go func() {
				defer func() { <-busy }()
				if answer := e.resolver().answer(e.ctx, question); answer != nil {
					c.WriteTo(answer, from) //nolint:errcheck // the program asks again
				}
			}()
		}
	}()
	return nil
}

func (e *Engine) fromInside(a net.Addr) bool {
	from, ok := a.(*net.UDPAddr)
	return ok && from.AddrPort().Addr().Unmap() == e.wire.Inside
}

// connect decides about a connection that a program asks for, makes its other half, and only then accepts it, so that the program sees if
// the server refuses.
func (e *Engine) connect(r *tcp.ForwarderRequest) {
	id := r.ID()
	from := netip.AddrFrom4(id.RemoteAddress.As4())
	to := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	if from != e.wire.Inside {
		r.Complete(false)
		return
	}
	f := e.newFlow("tcp", to)
	if !e.add(f) {
		e.note(f, errTooMany)
		r.Complete(true)
		return
	}
	if to == netip.AddrPortFrom(e.wire.Resolver, 53) {
		if n, near, err := e.accept(r, f); err == nil {
			f.stopWith(n.Abort)
			e.resolver().serveStream(e.ctx, near)
		}
		e.remove(f)
		return
	}
	far, err := e.reach(f)
	if err != nil {
		e.refuse(r, f, err)
		e.remove(f)
		return
	}
	// A look-up has grown the stack of this goroutine, so the connection, which may last long, gets a new one.
	go func() { e.finish(f, e.carry(r, f, far)) }()
}

// accept accepts a connection.
func (e *Engine) accept(r *tcp.ForwarderRequest, f *flow) (end, *gonet.TCPConn, error) {
	var n end
	var err tcpip.Error
	n.queue = new(waiter.Queue)
	n.Endpoint, err = r.CreateEndpoint(n.queue)
	r.Complete(err != nil)
	if err != nil {
		return end{}, nil, errors.New(err.String())
	}
	if f.size.TCP < smallBuffer {
		n.Endpoint.SocketOptions().SetSendBufferSize(int64(f.size.TCP), true)
		n.Endpoint.SocketOptions().SetReceiveBufferSize(int64(f.size.TCP), true)
	}
	return n, gonet.NewTCPConn(n.queue, n.Endpoint), nil
}

// newFlow returns the flow of a connection or datagram from inside.
func (e *Engine) newFlow(network string, to netip.AddrPort) *flow {
	f := &flow{begun: time.Now(), network: network, name: e.nameOf(to.Addr()), to: to, proto: control.ProtoTCP}
	switch {
	case network == "udp":
		f.proto = control.ProtoUDP
	case e.open || f.name == "":
	case to.Port() == 443:
		f.proto = control.ProtoTLS
	case to.Port() == 80:
		f.proto = control.ProtoHTTP
		f.to = netip.AddrPortFrom(to.Addr(), e.current().leaving(f.name, to.Port()))
		f.secured = f.to != to
	}
	return f
}

// add registers a flow. It reports false if there are too many, or if the engine has ended.
func (e *Engine) add(f *flow) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flows) >= share.MaxFlows || e.ctx.Err() != nil {
		return false
	}
	e.lastFlow++
	f.id, f.size = e.lastFlow, e.shares.Connect()
	e.flows[f] = struct{}{}
	return true
}

func (e *Engine) remove(f *flow) {
	e.mu.Lock()
	delete(e.flows, f)
	e.mu.Unlock()
	e.shares.Disconnect(f.size)
	e.changed()
}
