package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// rules returns rules by their texts; those that begin with "!" deny.
func rules(generation uint64, texts ...string) control.Rules {
	r := control.Rules{Generation: generation}
	for _, text := range texts {
		if denied, ok := strings.CutPrefix(text, "!"); ok {
			r.Deny = append(r.Deny, control.Rule{Text: denied, Source: "test"})
			continue
		}
		r.Allow = append(r.Allow, control.Rule{Text: text, Source: "test"})
	}
	return r
}

// newGuarded returns an engine that allows what rules allow, and the interface's stack.
func newGuarded(t testing.TB, world World, texts ...string) (*Engine, *stack.Stack) {
	t.Helper()
	return join(t, Settings{World: world, First: writable(rules(1, texts...))})
}

// dialName resolves a name inside and connects.
func dialName(t testing.TB, s *stack.Stack, name string, port uint16) (net.Conn, error) {
	t.Helper()
	a, code := ask(t, s, name+".")
	if !synthetic.Contains(a) {
		t.Fatalf("%s: %v, %v", name, a, code)
	}
	c, err := dialInside(t, s, netip.AddrPortFrom(a, port).String())
	if err != nil {
		return nil, err // not a nil *gonet.TCPConn
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c, nil
}

func mustDial(t testing.TB, s *stack.Stack, name string, port uint16) net.Conn {
	t.Helper()
	c, err := dialName(t, s, name, port)
	if err != nil {
		t.Fatalf("%s:%d: %v", name, port, err)
	}
	return c
}

// last waits for a record that satisfies a condition.
func lastRecord(t testing.TB, e *Engine, is func(control.Record) bool) control.Record {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		records, _ := e.journal.Unwritten()
		for _, r := range records {
			if is(r) {
				return r
			}
		}
	}
	records, _ := e.journal.Unwritten()
	t.Fatalf("no such record in %+v", records)
	return control.Record{}
}

// TestAllowlistDecides connects to names at ports, of which some are allowed.
func TestAllowlistDecides(t *testing.T) {
	world := &fakeWorld{serve: echo}
	_, s := newGuarded(t, world, "files.test:22", "*.a.test:22", "!no.a.test:22", "192.0.2.1:9")
	for name, allowed := range map[string]bool{
		"files.test": true, "FILES.test": true, "www.files.test": false, "www.a.test": true, "no.a.test": false, "evil.test": false,
		"x.y.a.test": false, "evila.test": false,
	} {
		c, err := dialName(t, s, name, 22)
		if (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dialName(t, s, "files.test", 23); err == nil {
		t.Error("another port is open")
	}
	for to, allowed := range map[string]bool{"192.0.2.1:9": true, "192.0.2.1:22": false, "198.19.200.200:22": false, "10.0.2.2:22": false} {
		c, err := dialInside(t, s, to)
		if (err == nil) != allowed {
			t.Errorf("%s: %v", to, err)
		}
		if err == nil {
			c.Close()
		}
	}
	world.mu.Lock()
	defer world.mu.Unlock()
	if len(world.reached) != 4 {
		t.Errorf("reached %q", world.reached)
	}
}

// clientOf makes TLS handshakes over a connection as a client that names a server.
func helloTo(c net.Conn, name string) error {
	return tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: name == ""}).HandshakeContext(context.Background())
}

// TestRefusalsAreReadable reads what clients of TLS and HTTP are told.
func TestRefusalsAreReadable(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: echo})
	err := helloTo(mustDial(t, s, "evil.test", 443), "evil.test")
	if err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("TLS: %v", err)
	}
	c := mustDial(t, s, "evil.test", 80)
	fmt.Fprint(c, "GET /secret?key=value HTTP/1.1\r\nHost: evil.test\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusForbidden || err != nil || !strings.Contains(string(text), "no rule allows it") || strings.Contains(string(text), "airlock") {
		t.Errorf("%s, %q, %v", answer.Status, text, err)
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Proto == control.ProtoTLS })
	if r.Name != "evil.test" || r.Port != 443 || r.Verdict != control.VerdictDeny || r.Reason == "" {
		t.Errorf("%+v", r)
	}
}

// TestTLSNamesItsServer opens TLS connections that name another server, none, or hide it.
func TestTLSNamesItsServer(t *testing.T) {
	heard := make(chan string, 100)
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		defer c.Close()
		h, err := hello.Read(c)
		heard <- fmt.Sprint(h.Name, " ", err == nil)
	}}, "files.test", "api.test", "hidden.test ech")
	for _, x := range []struct {
		to, says string
		allowed  bool
	}{
		{"files.test", "files.test", true}, {"files.test", "FILES.TEST", true}, {"files.test", "api.test", false},
		{"files.test", "evil.test", false}, {"files.test", "", false},
	} {
		c := mustDial(t, s, x.to, 443)
		go helloTo(c, x.says) // nobody answers the hello
		got := <-heard
		if x.allowed != (got == strings.ToLower(x.says)+" true" || got == x.says+" true") {
			t.Errorf("%s as %q: the server hears %q", x.to, x.says, got)
		}
		c.Close()
	}
	for _, text := range []string{"SSH-2.0-x\r\n", "GET / HTTP/1.1\r\nHost: files.test\r\n\r\n", "\x16\x03\x01\x00\x00", "\x80\x2e\x01\x03\x01"} {
		c := mustDial(t, s, "files.test", 443)
		io.WriteString(c, text)
		closeWrite(c)
		if got := <-heard; got != " false" {
			t.Errorf("%q: the server hears %q", text, got)
		}
		c.Close()
	}
	lastRecord(t, e, func(r control.Record) bool {
		return r.Kind == control.KindRefusal && r.Proto == control.ProtoTLS && strings.Contains(r.Reason, "evil.test")
	})
}

// serveWeb answers requests with what they ask for.
func serveWeb(c net.Conn) {
	serveRequests(context.Background(), c, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.RequestURI, body)
	}))
}

// TestEachRequestIsDecided sends requests over kept connections.
func TestEachRequestIsDecided(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: serveWeb}, "files.test", "api.test")
	for name, x := range map[string]struct {
		sent string
		want []int
		text string // of the last answer
	}{
		"own":          {"GET /a//b?x=%zz;y HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{200}, "GET files.test /a//b?x=%zz;y "},
		"with port":    {"GET / HTTP/1.1\r\nHost: FILES.test:80\r\n\r\n", []int{200}, "GET FILES.test:80 / "},
		"kept":         {"GET /1 HTTP/1.1\r\nHost: files.test\r\n\r\nPOST /2 HTTP/1.1\r\nHost: files.test\r\nContent-Length: 2\r\n\r\nhi", []int{200, 200}, "POST files.test /2 hi"},
		"chunks":       {"POST /2 HTTP/1.1\r\nHost: files.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", []int{200}, "POST files.test /2 hi"},
		"other":        {"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", []int{403}, ""},
		"second other": {"GET /1 HTTP/1.1\r\nHost: files.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", []int{200, 403}, ""},
		"other port":   {"GET / HTTP/1.1\r\nHost: files.test:8080\r\n\r\n", []int{403}, ""},
		"no host":      {"GET / HTTP/1.0\r\n\r\n", []int{403}, ""},
		"two hosts":    {"GET / HTTP/1.1\r\nHost: files.test\r\nHost: files.test\r\n\r\n", []int{400}, ""},
		"connect":      {"CONNECT files.test:443 HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403}, ""},
		"absolute":     {"GET http://files.test/ HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403}, ""},
		"two lengths":  {"POST / HTTP/1.1\r\nHost: files.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi", []int{400}, ""},
		"smuggled":     {"POST / HTTP/1.1\r\nHost: files.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", []int{200, 403}, ""},
		"odd encoding": {"POST / HTTP/1.1\r\nHost: files.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{501}, ""},
		"prior h2":     {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{403}, ""},
		"upgrade h2":   {"GET / HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n", []int{403}, ""},
		"long":         {"GET / HTTP/1.1\r\nHost: files.test\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431}, ""},
	} {
		text := wantAnswers(t, mustDial(t, s, "files.test", 80), name, x.sent, x.want)
		if x.text != "" && text != x.text {
			t.Errorf("%s: the last answer is %q", name, text)
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRequest && strings.HasPrefix(r.Path, "/a") })
	if r.Path != "/a//b" || r.Status != 200 || r.Method != "GET" || r.Name != "files.test" || r.Seen != control.SeenRequest {
		t.Errorf("%+v", r)
	}
}

// TestChangesCloseFlows changes rules while connections are open.
func TestChangesCloseFlows(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: echo}, "*.a.test:22", "b.test:22")
	one, other := mustDial(t, s, "x.a.test", 22), mustDial(t, s, "b.test", 22)
	open := func(c net.Conn) bool {
		if _, err := c.Write([]byte("x")); err != nil {
			return false
		}
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}
	if !open(one) || !open(other) {
		t.Fatal("not connected")
	}
	if f := e.state().Flows; len(f) != 2 || f[0].Name != "x.a.test" || f[0].Rule != "*.a.test:22" || f[0].Source != "test" || f[0].Sent != 1 || f[0].Got != 1 {
		t.Errorf("flows: %+v", f)
	}
	e.obey(control.Order{Rules: new(rules(2, "*.a.test:22", "b.test:22", "!x.a.test:22"))})
	if st := e.state(); st.Closed != 1 {
		t.Errorf("%d connections were closed", st.Closed)
	}
	if open(one) || !open(other) {
		t.Error("the wrong one was closed")
	}
	if r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindFlow && r.Name == "x.a.test" }); r.Verdict != control.VerdictClosed {
		t.Errorf("%+v", r)
	}
	e.obey(control.Order{Rules: new(rules(1, "*.a.test:22"))})
	if st := e.state(); st.Generation != 2 || st.Error == "" {
		t.Errorf("older rules: %+v", st)
	}
	e.obey(control.Order{Rules: new(rules(3, "not a rule at all"))})
	if st := e.state(); st.Generation != 2 || !strings.Contains(st.Error, "not a rule") || !open(other) {
		t.Errorf("bad rules: %+v", st)
	}
	locked := rules(4, "*.a.test:22", "b.test:22")
	locked.Lockdown = true
	e.obey(control.Order{Rules: &locked})
	if open(other) {
		t.Error("a connection survives a lockdown")
	}
	if c, err := dialName(t, s, "b.test", 22); err == nil {
		c.Close()
		t.Error("connected in a lockdown")
	}
	e.obey(control.Order{Rules: new(rules(5, "b.test:22"))})
	if c := mustDial(t, s, "b.test", 22); !open(c) {
		t.Error("the lockdown has not ended")
	}
}

// TestSilentFlowsEnd lets servers stop in the middle of what they send.
func TestSilentFlowsEnd(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		io.Copy(io.Discard, c)
	}}, "files.test", "files.test:22")
	e.idle = 100 * time.Millisecond
	for _, port := range []uint16{80, 22} {
		c := mustDial(t, s, "files.test", port)
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: files.test\r\n\r\n")
		if got, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("port %d: still open after %q", port, got)
		}
		c.Close()
	}
}

// TestRulesEnd checks that a connection ends at the end of the rule that allows it.
func TestRulesEnd(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: echo})
	r := rules(2, "a.test:22")
	var c net.Conn
	for moment := 300 * time.Millisecond; c == nil && moment < patience; moment *= 2 { // on a busy machine connecting takes longer
		r.Allow[0].Until = time.Now().Add(moment)
		e.obey(control.Order{Rules: &r})
		c, _ = dialName(t, s, "a.test", 22)
		r.Generation++
	}
	if c == nil {
		t.Fatal("not connected while the rule holds")
	}
	if _, err := io.Copy(io.Discard, c); err == nil || time.Now().Before(r.Allow[0].Until) {
		t.Errorf("%v at %v", err, time.Now())
	}
	if c, err := dialName(t, s, "a.test", 22); err == nil {
		c.Close()
		t.Error("connected afterwards")
	}
	r.Generation++
	r.Allow[0].Since, r.Allow[0].Until = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour) // the clock was set back
	e.obey(control.Order{Rules: &r})
	if c, err := dialName(t, s, "a.test", 22); err == nil {
		c.Close()
		t.Error("connected by a rule that was made later")
	}
}

// TestNothingWithoutRecords checks that no connection is made while the ledger cannot be written.
func TestNothingWithoutRecords(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: echo}, "a.test:22")
	e.obey(control.Order{Written: &control.Written{Error: "no space left"}})
	if c, err := dialName(t, s, "a.test", 22); err == nil {
		c.Close()
		t.Error("connected")
	}
	e.obey(control.Order{Written: &control.Written{}})
	mustDial(t, s, "a.test", 22).Close()
}
