package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOwnAddresses(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range append(own, &net.IPNet{IP: net.IPv4(127, 9, 9, 9)}, &net.IPNet{IP: net.IPv4bcast}) {
		address, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if address = address.Unmap(); address.IsLinkLocalUnicast() {
			continue // the kernel wants to know the interface
		}
		if err := checkRoute(address); err == nil {
			t.Errorf("%v is another machine's", address)
		}
	}
	err = checkRoute(netip.MustParseAddr("192.0.2.1"))
	if err != nil && !errors.Is(err, unix.ENETUNREACH) { // of a machine without any network
		t.Error(err)
	}
}

// TestConnectChecksEveryAddress has names with closed addresses, one of which only becomes closed on the way.
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
		if c, err := n.Connect(t.Context(), Target{"tcp", name, netip.MustParseAddrPort("198.18.0.1:80"), Rule{}}); err == nil {
			c.Close()
			t.Errorf("%s: connected", name)
		}
	}
	if dialled != 2 {
		t.Errorf("an address was checked %d times", dialled)
	}
	if c, err := n.Connect(t.Context(), Target{"tcp", "", netip.MustParseAddrPort("198.18.200.200:443"), Rule{}}); err == nil {
		c.Close()
		t.Error("connected to an address that stands for no name")
	}
	for _, name := range []string{"localhost", "a.localhost"} {
		if err := n.Exists(t.Context(), name); !errors.Is(err, ErrNoName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNameServers(t *testing.T) {
	got := nameServers("# nameserver 192.0.2.1\nnameserver 192.0.2.2\n\tnameserver fe80::1%eth0 \nsearch a.test\nnameserver x\nnameserver ::1\nnameserver 192.0.2.4\n")
	if want := []string{"192.0.2.2:53", "[fe80::1%eth0]:53", "[::1]:53"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func FuzzParseRoute(f *testing.F) {
	f.Add(routeRequest(netip.MustParseAddr("192.0.2.1")))
	f.Fuzz(func(t *testing.T, m []byte) {
		if kind, err := parseRoute(m); err != nil && kind != 0 {
			t.Errorf("%d, %v", kind, err)
		}
	})
}
