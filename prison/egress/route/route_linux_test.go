package route

import (
	"errors"
	"net"
	"net/netip"
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
		if err := Check(address); err == nil {
			t.Errorf("%v is another machine's", address)
		}
	}
	err = Check(netip.MustParseAddr("192.0.2.1"))
	if err != nil && !errors.Is(err, unix.ENETUNREACH) { // of a machine without any network
		t.Error(err)
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
