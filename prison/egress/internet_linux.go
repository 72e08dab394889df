package egress

import (
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

// Internet is every public address. What is local to this machine or to a network is not reached, whatever its name.
type Internet struct {
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	check  func(netip.Addr) error // for addresses that this machine keeps to itself at this moment
}

// NewInternet returns the internet as the resolver and the routes of this machine lead to it.
func NewInternet() *Internet { return &Internet{lookup: lookup, check: route.Check} }

// lookup asks the resolver of this machine for a name that is absolute: nothing is appended to it.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	r := net.Resolver{PreferGo: true} // the other way loads libraries, which a confined process cannot
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

// Datagrams implements [World]: a name may be one with public addresses.
func (*Internet) Datagrams(name string, to netip.AddrPort) bool {
	return name != "" || Vet(to.Addr()) == nil
}

// A ClosedError is a refusal to connect to an address.
type ClosedError struct{ cause error }

func (e *ClosedError) Error() string { return e.cause.Error() }

func (e *ClosedError) Unwrap() error { return e.cause }

// Connect implements [World]. It looks a name up once and checks every address; one that is closed spoils the name. Just
// before it connects, the address is checked again.
//
// A proxy looks names up by itself. It gets a name only if the user's rules are about the name, which then need not exist for this
// machine. In place of a name that an agent chose it gets the address that was checked.
func (n *Internet) Connect(ctx context.Context, t Target) (net.Conn, error) {
	addresses := []netip.Addr{t.To.Addr()}
	named := t.Name != "" && t.Rule.host != "" && !t.Rule.addresses.IsValid()
	if t.Name != "" {
		var err error
		if addresses, err = n.lookup(ctx, t.Name); err != nil && (t.Way == nil || !named) {
			return nil, err
		}
	}
	check := func(a netip.Addr) error {
		err := t.Rule.Vet(a)
		if err == nil {
			err = n.check(a)
		}
		if err != nil {
			return &ClosedError{err}
		}
		return nil
	}
	for _, a := range addresses {
		if err := check(a); err != nil {
			return nil, err
		}
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

// dial connects to an address that is checked just before.
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

// Forward implements [World]: the first resolver of this machine that answers does.
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

// nameServers returns the addresses that questions are sent to, at most three as resolv.conf(5) has it.
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

// truncated is a bit in the third byte of a DNS message: there is more to be had over TCP.
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

// VetAddress returns an error for an address to which no connection is made, although the rule is about it.
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

// LookUp looks a name up as a connection that the rule allows would, and vets each address. It connects to none. The errors are
// those of the addresses.
func (r Rule) LookUp(ctx context.Context, name string) (addresses []string, vetted []error, err error) {
	found, err := lookup(ctx, name)
	for _, a := range found {
		err := r.Vet(a)
		if err == nil {
			err = route.Check(a)
		}
		addresses, vetted = append(addresses, a.Unmap().String()), append(vetted, err)
	}
	return addresses, vetted, err
}
