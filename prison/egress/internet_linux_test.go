package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// TestConnectChecksEveryAddress connects to names with closed addresses, one of which becomes closed after the look-up.
func TestConnectChecksEveryAddress(t *testing.T) {
	public, private := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.9.9.9")
	dialled := 0
	n := &Internet{
		lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			return map[string][]netip.Addr{
				"private.test": {private}, "both.test": {public, private}, "mapped.test": {netip.MustParseAddr("::ffff:10.9.9.9")},
				"late.test": {netip.MustParseAddr("203.0.113.1")}, "none.test": nil,
			}[name], nil
		},
	}
	n.check = func(a netip.Addr) error {
		if a == netip.MustParseAddr("203.0.113.1") {
			if dialled++; dialled > 1 {
				return errors.New("it is ours now")
			}
		}
		return nil
	}
	for _, name := range []string{"private.test", "both.test", "mapped.test", "late.test", "none.test"} {
		if c, err := n.Connect(t.Context(), Target{"tcp", name, netip.MustParseAddrPort("198.18.0.1:80"), &Policy{Learn: true}, netip.Addr{}, nil}); err == nil {
			c.Close()
			t.Errorf("%s: connected", name)
		}
	}
	if dialled != 2 {
		t.Errorf("an address was checked %d times", dialled)
	}
	if c, err := n.Connect(t.Context(), Target{"tcp", "", netip.MustParseAddrPort("198.18.200.200:443"), &Policy{Open: true}, netip.Addr{}, nil}); err == nil {
		c.Close()
		t.Error("connected to an address that stands for no name")
	}
	for _, name := range []string{"localhost", "a.localhost"} {
		if err := n.Exists(t.Context(), name); !errors.Is(err, ErrNoName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConnectThroughProxy checks the request to a proxy: it has a name if the user's rules are about it, and otherwise an address that was
// checked.
func TestConnectThroughProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host })}
	go server.Serve(l) // until it is closed
	defer server.Close()
	p, _, err := upstream.Parse("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n := &Internet{check: func(netip.Addr) error { return nil }, lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		known := map[string]string{"public.test": "192.0.2.1", "lan.test": "10.9.9.9", "own.test": "10.9.9.9"}
		if known[name] == "" {
			return nil, ErrNoName
		}
		return []netip.Addr{netip.MustParseAddr(known[name])}, nil
	}}
	short := 0
	n.shortly = func(ctx context.Context, name string) ([]netip.Addr, error) {
		short++
		return n.lookup(ctx, name)
	}
	for i, c := range []struct{ name, rule, to, want string }{
		{"public.test", "public.test", "198.18.0.1:443", "public.test:443"}, {"www.public.test", "*.public.test", "198.18.0.1:443", "www.public.test:443"},
		{"unknown.test", "unknown.test:22", "198.18.0.1:22", "unknown.test:22"}, {"own.test", "own.test =10.9.9.9", "198.18.0.1:80", "10.9.9.9:80"},
		{"public.test", "", "198.18.0.1:443", "192.0.2.1:443"}, {"", "", "192.0.2.7:80", "192.0.2.7:80"}, {"", "[2001:db8::1]:80", "[2001:db8::1]:80", "[2001:db8::1]:80"},
		{"unknown.test", "", "198.18.0.1:443", ""}, {"lan.test", "lan.test", "198.18.0.1:443", ""}, {"lan.test", "", "198.18.0.1:443", ""},
		{"unknown.test", "unknown.test =10.9.9.9", "198.18.0.1:443", ""}, {"own.test", "own.test, own.test =10.9.9.9", "198.18.0.1:80", "10.9.9.9:80"}, {"", "", "10.9.9.9:80", ""},
	} {
		rules := &Policy{Open: true}
		if c.rule != "" {
			rules.Allow = mustParse(t, strings.Split(c.rule, ", ")...)
		}
		far, err := n.Connect(t.Context(), Target{"tcp", c.name, netip.MustParseAddrPort(c.to), rules, netip.Addr{}, &upstream.Way{Proxy: p}})
		if far != nil {
			far.Close()
		}
		got := ""
		select {
		case got = <-asked:
		default:
		}
		if entrusted := c.rule != "" && !strings.Contains(c.rule, "=") && c.name != ""; (short == 1) != entrusted {
			t.Errorf("%d, %+v: %d short look-ups", i, c, short)
		}
		short = 0
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d, %+v: asked for %q, %v", i, c, got, err)
		}
	}
}

// TestClosedAddressIsRecorded checks the record of a name that leads to a closed address: it names the address, and says whether a rule can
// open it.
func TestClosedAddressIsRecorded(t *testing.T) {
	addresses := map[string]string{"lan.test": "10.9.9.9", "own.test": "10.9.9.1", "loop.test": "127.0.0.1"}
	world := &Internet{
		lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(addresses[name])}, nil
		},
		check: func(a netip.Addr) error {
			if a.String() == "10.9.9.1" {
				return errors.New("it is ours")
			}
			return nil
		},
	}
	e, s := newGuarded(t, world, "*.test.example", "lan.test", "own.test", "loop.test")
	for name, address := range addresses {
		if c, err := dialName(t, s, name, 443); err == nil {
			helloTo(c, name)
			c.Close()
		}
		r := lastRecord(t, e, func(r control.Record) bool { return r.Name == name })
		if r.Address != address || r.Final() != (name != "lan.test") {
			t.Errorf("%+v", r)
		}
	}
}
