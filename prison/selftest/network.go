package selftest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/prison"
)

const (
	// unknownName is a name that nobody has (RFC 2606), and elsewhere an address that nobody has (RFC 5737). If a packet leaves, it
	// reaches nobody.
	unknownName = "selftest.example"
	elsewhere   = "203.0.113.1"
)

func noNetwork(s Subject) bool { return s.Spec.Network == prison.NetworkNone }
func noNames(s Subject) bool   { return s.Spec.Network != prison.NetworkAllowlist }

// networkProbes test which addresses and names a network refuses. Those for an allowlist require an immediate refusal, which only the
// process with the network's other end can give: to a packet that leaves, nobody answers.
func networkProbes() []probe {
	return []probe{
		{
			name: "metadata", promise: "metadata services of clouds cannot be reached", tried: "connecting to 169.254.169.254",
			try: func(ctx context.Context, s Subject) (string, string, error) {
				return tryConnect(ctx, s, "169.254.169.254", 80)
			},
		},
		{
			name: "other-metadata", promise: "no other address of clouds' metadata is in reach", tried: "connecting to " + strings.Join(otherMetadata, ", "),
			try: func(ctx context.Context, s Subject) (seen, broken string, err error) {
				for _, address := range otherMetadata {
					if seen, broken, err = tryConnect(ctx, s, address, 80); broken != "" || err != nil {
						break
					}
				}
				return seen, broken, err
			},
			skip: noNetwork,
		},
		{
			name: "own-addresses", promise: "this machine's own addresses cannot be reached", tried: "connecting to them, with a listener",
			try: func(ctx context.Context, s Subject) (string, string, error) { return tryOwn(ctx, s, ownAddresses()) }, skip: noNetwork,
		},
		{
			name: "denied-name", promise: "a name that no rule allows is refused", tried: "git, " + unknownName,
			script: "LC_ALL=C git -c protocol.git.allow=always ls-remote git://" + unknownName + "/x 2>&1; true",
			evaluate: func(_ Subject, out string) (seen, broken string) {
				if strings.Contains(out, "Connection refused") {
					return "connection refused", ""
				}
				return "", out
			},
			skip: noNames,
		},
		{
			name: "denied-address", promise: "an address that no rule allows is refused", tried: "connecting to " + elsewhere,
			try: func(ctx context.Context, s Subject) (string, string, error) {
				return refused(tryConnect(ctx, s, elsewhere, 443))
			},
			skip: noNames,
		},
		{
			name: "datagrams", promise: "only connections of TCP leave", tried: "sending a datagram to " + elsewhere,
			try: func(ctx context.Context, s Subject) (string, string, error) {
				return refused(tryDatagram(ctx, s, elsewhere, 53))
			},
			skip: noNames,
		},
	}
}

// refused accepts only an immediate refusal.
func refused(seen, broken string, err error) (string, string, error) {
	if err != nil || broken != "" || seen == syscall.ECONNREFUSED.Error() {
		return seen, broken, err
	}
	return "", "not refused at once: " + seen, nil
}

// ownAddresses returns this machine's addresses (IPv4) other than loopback.
func ownAddresses() (own []netip.Addr) {
	all, _ := net.InterfaceAddrs() // on an error there are no addresses to try
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			own = append(own, p.Addr())
		}
	}
	return own[:min(len(own), maxOwn)]
}

// maxOwn is how many addresses are tried at most.
const maxOwn = 4

// tryOwn tries to reach a listener at each address. Meanwhile other machines can connect to the listener, which reads nothing.
func tryOwn(ctx context.Context, s Subject, own []netip.Addr) (seen, broken string, err error) {
	seen = "this machine has none"
	var listen net.ListenConfig
	for _, address := range own {
		l, err := listen.Listen(ctx, "tcp4", netip.AddrPortFrom(address, 0).String())
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue // the address no longer exists
		}
		if err != nil {
			return "", "", &untriedError{reason: fmt.Sprint("listen: ", err)}
		}
		seen, broken, err = tryConnect(ctx, s, address.String(), l.Addr().(*net.TCPAddr).Port)
		l.Close()
		if err != nil {
			return "", "", err
		}
		if broken != "" {
			return "", "connected to an address of this machine", nil
		}
	}
	return seen, "", nil
}
