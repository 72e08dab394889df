package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// brokenWorld connects once, and then fails.
type brokenWorld struct {
	World
	connected atomic.Bool
	err       error
}

func (w *brokenWorld) Connect(ctx context.Context, t Target) (net.Conn, error) {
	if w.connected.Swap(true) {
		return nil, w.err
	}
	return w.World.Connect(ctx, t)
}

// TestFailuresInside has a client that keeps its connection, while the server closes its own and the next one fails. The client reads fixed
// words, and the ledger has the reason.
func TestFailuresInside(t *testing.T) {
	const marker = "MARKER"
	address := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 77), Port: 4444}
	closedAddress := &ClosedError{Address: netip.MustParseAddr("10.1.2.77"), cause: Vet(netip.MustParseAddr("10.1.2.77"))}
	for name, c := range map[string]struct {
		err          error
		status       int
		told, record string
	}{
		"a proxy":          {errors.New("the proxy fails: " + marker), 502, "no connection to the server\n", marker},
		"a connection":     {&net.OpError{Op: "read", Net: "tcp", Source: address, Addr: address, Err: errors.New(marker)}, 502, "no connection to the server\n", "192.0.2.77"},
		"a look-up":        {&net.DNSError{Err: marker, Name: "files.test", Server: "192.0.2.77:53"}, 502, "the server's name cannot be looked up\n", marker},
		"a closed address": {closedAddress, 403, "its address is not open", "10.1.2.77"},
	} {
		serve := func(far net.Conn) {
			serveRequests(t.Context(), far, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
		}
		e, s := newGuarded(t, &brokenWorld{World: &fakeWorld{serve: serve}, err: c.err}, "files.test")
		inside := mustDial(t, s, "files.test", 80)
		from := bufio.NewReader(inside)
		var text []byte
		for _, want := range []int{200, c.status} {
			go fmt.Fprint(inside, "GET / HTTP/1.1\r\nHost: files.test\r\n\r\n")
			answer, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, _ = io.ReadAll(answer.Body)
			answer.Body.Close()
			if all := fmt.Sprint(answer.Header, string(text)); answer.StatusCode != want || strings.Contains(all, marker) || strings.Contains(all, ".77") {
				t.Errorf("%s: %s %s", name, answer.Status, all)
			}
		}
		if !strings.Contains(string(text), c.told) {
			t.Errorf("%s: %q; want %q", name, text, c.told)
		}
		lastRecord(t, e, func(r control.Record) bool { return strings.Contains(r.Reason+r.Address, c.record) })
	}
}

// TestClosedAddressInside checks that a refusal of an address, to which a connection leads already, does not name the address inside.
func TestClosedAddressInside(t *testing.T) {
	p := Policy{Allow: mustParse(t, "files.test")}
	d := p.DecideAt("files.test", netip.MustParseAddrPort("198.18.0.1:80"), netip.MustParseAddr("10.1.2.77"))
	if refused := d.refusal(); d.Allowed || !strings.Contains(refused.Error(), "10.1.2.77") || refused.told != notOpen {
		t.Errorf("%+v", refused)
	}
}
