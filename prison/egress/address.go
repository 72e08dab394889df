package egress

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/git-airlock/git-airlock/prison"
)

var (
	// globalUnicast is the only part of IPv6 that the internet routes (RFC 4291). It leaves out unique local, link-local,
	// site-local, multicast and loopback addresses, and IPv4 addresses in their deprecated compatible form.
	globalUnicast = netip.MustParsePrefix("2000::/3")

	// Prefixes of addresses that carry an IPv4 address.
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056
	teredo    = netip.MustParsePrefix("2001::/32")    // RFC 4380

	closedBlocks = closedPrefixes()
)

func closedPrefixes() (list []netip.Prefix) {
	for _, b := range prison.Closed {
		list = append(list, netip.PrefixFrom(netip.AddrFrom4(b.Address), b.Bits))
	}
	return list
}

// Vet returns an error that names the address unless the internet routes it. It refuses an address that is local to a host or a network,
// private, reserved, or a cloud's metadata service ([prison.Closed]), and an IPv6 address that carries such an IPv4 address. It does not
// refuse documentation ranges. It does not know this machine's own addresses: see package route.
func Vet(a netip.Addr) error {
	if !public(a) {
		return fmt.Errorf("address %v is not public", a)
	}
	return nil
}

func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if a = a.Unmap(); a.Is4() {
		return !slices.ContainsFunc(closedBlocks, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[12:])))
	case sixToFour.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	case teredo.Contains(a):
		var client [4]byte // the client's address, with all its bits inverted
		binary.BigEndian.PutUint32(client[:], ^binary.BigEndian.Uint32(b[12:]))
		return public(netip.AddrFrom4([4]byte(b[4:8]))) && public(netip.AddrFrom4(client))
	}
	return globalUnicast.Contains(a)
}

// IsAddress reports whether a text is an IP address without a zone, and not a name.
func IsAddress(text string) bool {
	a := AddressOf(text)
	return a.IsValid() && a.Zone() == ""
}

// AddressOf returns the address in a text; invalid if the text is none.
func AddressOf(text string) netip.Addr {
	a, _ := netip.ParseAddr(text)
	return a
}

// IsPrivate reports whether a text is an address of a private network, which a rule can open.
func IsPrivate(text string) bool { return AddressOf(text).IsPrivate() }
