// Package prefix reads the addresses and ports of rules.
package prefix

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// ParsePort reads a port as people write it: no sign, no leading zero.
func ParsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return 0, fmt.Errorf("port %q: want 1 to 65535", words.Clip(text, 80))
	}
	return uint16(port), nil
}

// Parse reads an IPv4 prefix or address, or an IPv6 one in brackets.
func Parse(text string) (netip.Prefix, bool) {
	inside, bracketed := strings.CutPrefix(text, "[")
	if bracketed {
		if text, bracketed = strings.CutSuffix(inside, "]"); !bracketed {
			return netip.Prefix{}, false
		}
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), p.Addr().Is6() == bracketed && !p.Addr().Is4In6()
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is6() != bracketed || a.Zone() != "" || a.Is4In6() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}
