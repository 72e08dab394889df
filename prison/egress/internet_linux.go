package egress

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/route"
)

const (
	// connectPatience is how long connecting to one address may take, lookupPatience a look-up.
	connectPatience = 10 * time.Second
	lookupPatience  = 10 * time.Second
)

// Internet is the [World] of public addresses. It refuses addresses of private networks, unless a rule opens them, and of this machine.
type Internet struct {
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	check  func(netip.Addr) error // returns an error for an address that is this machine's own at this moment
}

// newInternet returns an Internet that uses the resolver and the routes of this machine.
func newInternet() *Internet { return &Internet{lookup: lookup, check: route.Check} }

// lookup asks the resolver of this machine for an absolute name, to which it appends no search domain.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	r := net.Resolver{PreferGo: true} // the resolver of libc loads libraries, which a confined process cannot
	found, err := r.LookupNetIP(ctx, "ip", name+".")
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return nil, ErrNoName
	}
	return found, err
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
// A proxy looks names up itself. It gets a name only if a rule of the user allows the name; this machine need not be able to look it up.
// Otherwise, an agent may have chosen the name, and the proxy gets the checked address instead.
func (n *Internet) Connect(ctx context.Context, t Target) (net.Conn, error) {
	addresses := []netip.Addr{t.To.Addr()}
	named := t.Name != "" && t.Rules.Entrusts(t.Name, t.To.Port())
	if t.Name != "" {
		var err error
		if addresses, err = n.lookup(ctx, t.Name); err != nil && (t.Way == nil || !named) {
			return nil, err
		}
	}
	check := func(a netip.Addr) error {
		err, own := t.Rules.vet(t.Name, t.To, a), n.check(a)
		if err == nil && own == nil {
			return nil
		}
		return &ClosedError{a.Unmap(), own != nil || !private(a.Unmap()), cmp.Or(err, own)}
	}
	for _, a := range addresses {
		if err := check(a); err != nil {
			return nil, err
		}
	}
	if kept := t.Keep; private(kept) || slices.ContainsFunc(addresses, private) && kept.IsValid() {
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

// resolverFile names the resolvers of this machine, see resolv.conf(5).
const resolverFile = "/etc/resolv.conf"

// Forward implements [World]. It returns the answer of the first resolver of this machine that gives one.
func (*Internet) Forward(ctx context.Context, question []byte) ([]byte, error) {
	content, err := os.ReadFile(resolverFile)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s names no resolver", resolverFile)
	for _, server := range nameServers(string(content)) {
		var answer []byte
		if answer, err = exchange(ctx, "udp", server, question); err == nil && len(answer) > 2 && answer[2]&truncated != 0 {
			answer, err = exchange(ctx, "tcp", server, question)
		}
		if err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// nameServers returns the addresses that questions are sent to, at most three, see resolv.conf(5).
func nameServers(content string) (servers []string) {
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" || len(servers) == 3 {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, netip.AddrPortFrom(a, 53).String())
		}
	}
	return servers
}

// truncated is the bit in the third byte of a DNS message that says that the whole message needs TCP.
const truncated = 2

// exchange sends a question to a resolver and returns the answer.
func exchange(ctx context.Context, network, server string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsPatience/4)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	c.SetDeadline(end)
	if network == "udp" {
		if _, err := c.Write(question); err != nil {
			return nil, err
		}
		buf := make([]byte, maxAnswer)
		n, err := c.Read(buf)
		return buf[:n], err
	}
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)); err != nil {
		return nil, err
	}
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(head[:]))
	_, err = io.ReadFull(c, answer)
	return answer, err
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
	found, err := lookup(ctx, q.Host)
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
