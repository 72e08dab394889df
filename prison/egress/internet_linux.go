package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/lookup"
	"github.com/git-airlock/git-airlock/prison/egress/route"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// connectPatience is how long connecting to one address may take.
const connectPatience = 10 * time.Second

// Internet is the [World] of public addresses. It refuses addresses of private networks, unless a rule opens them, and of this machine.
type Internet struct {
	lookup  func(ctx context.Context, name string) ([]netip.Addr, error)
	shortly func(ctx context.Context, name string) ([]netip.Addr, error) // of a name that a proxy may look up
	check   func(netip.Addr) error                                       // returns an error for an address that is this machine's own at this moment
}

// newInternet returns an Internet that uses the resolver and the routes of this machine.
func newInternet() *Internet {
	var r lookup.Resolver
	return &Internet{lookup: r.LookUp, shortly: r.LookUpShortly, check: route.Check}
}

// Exists implements [World].
func (n *Internet) Exists(ctx context.Context, name string) error {
	if isLoopback(name) {
		return ErrNoName
	}
	_, err := n.lookup(ctx, name)
	return err
}

// Datagrams implements [World]. It allows every name, since only Connect learns the name's addresses.
func (*Internet) Datagrams(name string, to netip.AddrPort) bool {
	return name != "" || Vet(to.Addr()) == nil
}

// A ClosedError is a refusal to connect to an address.
type ClosedError struct {
	Address netip.Addr
	Final   bool // no rule can open the address
	cause   error
}

func (e *ClosedError) Error() string { return e.cause.Error() }

func (e *ClosedError) Unwrap() error { return e.cause }

// Connect implements [World]. It looks a name up once and checks every address. If one is closed, it refuses the name. It checks an address
// again just before it connects. If an earlier connection of the same flow led to a private address, a later one leads to no other: the
// rules about some requests may open one of them only.
//
// A proxy looks names up itself. It gets a name only if a rule of the user allows the name; this machine need not be able to look it up, and
// does not wait for long. Otherwise, an agent may have chosen the name, and the proxy gets the checked address instead.
func (n *Internet) Connect(ctx context.Context, t Target) (net.Conn, error) {
	addresses := []netip.Addr{t.To.Addr()}
	named := t.Name != "" && t.Rules.Entrusts(t.Name, t.To.Port())
	if t.Name != "" {
		find := n.lookup
		if t.Way != nil && named {
			find = n.shortly
		}
		var err error
		if addresses, err = find(ctx, t.Name); err != nil && (t.Way == nil || !named) {
			return nil, err
		}
	}
	check := func(a netip.Addr) error {
		err, own := t.Rules.vet(t.Name, t.To, a), n.check(a)
		if err == nil && own == nil {
			return nil
		}
		return &ClosedError{a.Unmap(), own != nil || !a.IsPrivate(), cmp.Or(err, own)}
	}
	for _, a := range addresses {
		if err := check(a); err != nil {
			return nil, err
		}
	}
	if kept := t.Keep; kept.IsPrivate() || slices.ContainsFunc(addresses, netip.Addr.IsPrivate) && kept.IsValid() {
		addresses = slices.DeleteFunc(addresses, func(a netip.Addr) bool { return a.Unmap() != kept })
	}
	switch port := strconv.Itoa(int(t.To.Port())); {
	case t.Way != nil && named:
		return t.Way.Dial(ctx, net.JoinHostPort(t.Name, port))
	case t.Way != nil && len(addresses) > 0:
		return t.Way.Dial(ctx, net.JoinHostPort(addresses[0].Unmap().String(), port))
	}
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	err := errors.New("no address")
	for _, a := range addresses {
		var c net.Conn
		if c, err = dial(ctx, t.Network, netip.AddrPortFrom(a.Unmap(), t.To.Port()), check); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// dial connects to an address, and checks the address just before.
func dial(ctx context.Context, network string, to netip.AddrPort, check func(netip.Addr) error) (net.Conn, error) {
	d := net.Dialer{
		Timeout: connectPatience,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return check(at.Addr())
		},
	}
	return d.DialContext(ctx, network, to.String())
}

// Forward implements [World].
func (*Internet) Forward(ctx context.Context, question []byte) ([]byte, error) {
	return lookup.Forward(ctx, question)
}

// VetAddress returns an error for an address of the rule to which the engine would not connect.
func (r Rule) VetAddress(text string) error {
	a, err := netip.ParseAddr(text)
	if err == nil {
		err = r.Vet(a)
	}
	if err != nil {
		return err
	}
	err = route.Check(a)
	if _, unreached := errors.AsType[syscall.Errno](err); unreached {
		return nil // this machine has no route to it, so it is not its own
	}
	return err
}

// LookUp looks the name of a question up, and decides about each address. It does not connect. vetted has an error, or nil, for each
// address.
func (p Policy) LookUp(ctx context.Context, q Question) (addresses []string, vetted []error, err error) {
	var r lookup.Resolver
	find := r.LookUp
	if p.proxy != (upstream.Proxy{}) && p.Entrusts(q.Host, q.Port) {
		find = r.LookUpShortly
	}
	found, err := find(ctx, q.Host)
	for _, a := range found {
		q.At = a
		d, err := p.Ask(q)
		if err == nil && !d.Allowed {
			err = errors.New(d.Reason)
		}
		if err == nil {
			err = route.Check(a)
		}
		addresses, vetted = append(addresses, a.Unmap().String()), append(vetted, err)
	}
	return addresses, vetted, err
}
