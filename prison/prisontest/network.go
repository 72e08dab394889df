package prisontest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// startOpen starts a prison with an open network. It skips the test if the machine does not support that, unless the machine must.
func startOpen(t *testing.T, b prison.Backend, o Options) *box {
	t.Helper()
	s := NewSpec(t, b, o)
	s.Network = prison.NetworkOpen
	var isolation prison.Isolation
	err := b.Prepare(t.Context(), s)
	if err == nil {
		isolation, err = b.Start(t.Context(), s)
	}
	if unavailable, ok := errors.AsType[*prison.Unavailable](err); ok && !Required("network") {
		if unavailable.Reason == "" {
			t.Error("refused without a reason")
		}
		t.Skipf("SKIPPED, AN OPEN NETWORK IS NOT TESTED: %v; to mend it: %s", err, strings.Join(unavailable.Mend, "; "))
	}
	if err != nil {
		t.Fatalf("open network: %v", err)
	}
	return attach(t, b, s, isolation)
}

// networks checks which addresses a prison with an open network reaches.
func networks(t *testing.T, b prison.Backend, o Options) {
	x := startOpen(t, b, o)
	if x.sh(t, "command -v bash && command -v timeout").status != 0 {
		t.Skip("SKIPPED: there is no bash inside to connect with")
	}
	openNetwork(t, x)
}

func openNetwork(t *testing.T, x *box) {
	connects := func(host string, port int) bool {
		return x.sh(t, fmt.Sprintf("timeout 2 bash -c 'exec 3<>/dev/tcp/%s/%d'", host, port)).status == 0
	}
	port := listen(t, "127.0.0.1")
	gateway := x.must(t, `while read -r _ to via _; do [ "$to" = 00000000 ] && echo "$via"; done < /proc/net/route; true`)
	var g [4]int
	if _, err := fmt.Sscanf(gateway, "%2x%2x%2x%2x", &g[3], &g[2], &g[1], &g[0]); err != nil {
		t.Errorf("the default route: %q", gateway)
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", fmt.Sprintf("%d.%d.%d.%d", g[0], g[1], g[2], g[3])} {
		if connects(host, port) {
			t.Errorf("the host's loopback can be reached through %s", host)
		}
	}
	for _, host := range []string{"169.254.169.254", "169.254.1.1"} {
		if connects(host, 80) {
			t.Errorf("connected to %s", host)
		}
	}
	if x.must(t, "cat /etc/resolv.conf") == "" {
		t.Error("there is no name server")
	}
	host := ownAddress()
	if host == "" {
		t.Log("this machine has no address but loopback: nothing to reach")
		return
	}
	if connects(host, listen(t, host)) {
		t.Errorf("connected to the host's own address %s", host)
	}
}

func listen(t *testing.T, host string) (port int) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// ownAddress returns an address of this machine that other machines can reach. It is empty if there is none.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}
