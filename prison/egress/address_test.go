package egress

import (
	"net/netip"
	"testing"
)

// TestVet checks which addresses a prison may connect to.
func TestVet(t *testing.T) {
	for address, want := range map[string]bool{
		"192.0.2.1": true, "198.51.100.7": true, "203.0.113.9": true, // documentation
		"8.8.8.8": true, "172.32.0.0": true, "100.128.0.0": true, "168.63.129.17": true, "169.253.255.255": true, "169.255.0.0": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "127.0.0.1": false, "127.255.255.255": false,
		"100.64.0.1": false, "100.100.100.200": false, "168.63.129.16": false, "169.254.169.254": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.0.0.192": false, "192.168.1.1": false, "198.18.0.1": false, "198.19.255.254": false,
		"224.0.0.251": false, "240.0.0.1": false, "255.255.255.255": false,
		"2606:4700::1111": true, "2001:db8::1": true, "2a00::1": true,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "2606::1%eth0": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"ff02::1": false, "100::1": false, "4000::1": false,
		"::ffff:192.0.2.1": true, "::ffff:169.254.169.254": false, "::ffff:127.0.0.1": false, "::192.0.2.1": false, "::127.0.0.1": false,
		"64:ff9b::192.0.2.1": true, "64:ff9b::169.254.169.254": false, "64:ff9b::10.0.0.1": false, "64:ff9b:1::192.0.2.1": false,
		"2002:c000:0201::1": true, "2002:0a09:0909::1": false, "2002:7f00:0001::": false,
		"2001:0:c000:201:0:0:3fff:fdfe": true, "2001:0:0a00:0001:0:0:3fff:fdfe": false, "2001:0:c000:201:0:0:80ff:fffe": false,
	} {
		if err := Vet(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if Vet(netip.Addr{}) == nil {
		t.Error("no address at all is public")
	}
}

// TestVetEmbedded checks that an IPv4 address has the same answer in every form that carries it.
func TestVetEmbedded(t *testing.T) {
	for i := range 1 << 16 {
		four := [4]byte{byte(i >> 8), byte(i), byte(i * 7), byte(i * 13)}
		want := public(netip.AddrFrom4(four))
		mapped := netip.AddrFrom16(netip.AddrFrom4(four).As16())
		six := [16]byte{0x20, 0x02, four[0], four[1], four[2], four[3]}
		translated := [16]byte{0, 0x64, 0xff, 0x9b, 12: four[0], four[1], four[2], four[3]}
		tunnelled := [16]byte{0x20, 0x01, 4: 192, 0, 2, 1, 12: ^four[0], ^four[1], ^four[2], ^four[3]}
		for _, a := range []netip.Addr{mapped, netip.AddrFrom16(six), netip.AddrFrom16(translated), netip.AddrFrom16(tunnelled)} {
			if public(a) != want {
				t.Fatalf("%v carries %v: %v, want %v", a, four, public(a), want)
			}
		}
	}
}
