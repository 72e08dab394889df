package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/share"
	"github.com/git-airlock/git-airlock/prison/egress/single"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// newSeen returns an engine for a world of TLS servers, and the interface's stack. This machine trusts the certificates for *.test only.
func newSeen(t testing.TB, h http.HandlerFunc, texts ...string) (*Engine, *stack.Stack) {
	t.Helper()
	var outside, unknown authority.Set
	for name, set := range map[string]*authority.Set{"test": &outside, "example": &unknown} {
		if err := set.Update([]string{name}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	secure := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(i *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if strings.HasSuffix(i.ServerName, ".example") {
			return unknown.Leaf(i.ServerName, time.Now())
		}
		return outside.Leaf(i.ServerName, time.Now())
	}}
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) { serveRequests(context.Background(), c, secure, h) }}, texts...)
	e.roots = func() (*x509.CertPool, error) { return poolOf(outside.PEM()), nil }
	return e, s
}

// TestAddedAuthorities reads the authorities that the engine trusts, for several connections and after changes of the rules.
func TestAddedAuthorities(t *testing.T) {
	var first, second authority.Set
	for _, s := range []*authority.Set{&first, &second} {
		if err := s.Update([]string{"test"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := newGuarded(t, &fakeWorld{}, "files.test")
	var last *x509.CertPool
	for i, x := range []struct {
		added string
		same  bool // as before, not parsed again
	}{{"", false}, {first.PEM(), false}, {first.PEM(), true}, {first.PEM() + second.PEM(), false}, {"", false}} {
		next := rules(uint64(i+2), "files.test")
		next.Added = x.added
		e.obey(control.Order{Rules: &next})
		want, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		want.AppendCertsFromPEM([]byte(x.added))
		for range 2 {
			got, err := e.machineRoots()
			if err != nil || !got.Equal(want) {
				t.Fatalf("%d: other certificates, or %v", i, err)
			}
			if same := got == last; same != x.same {
				t.Errorf("%d: the same pool: %t", i, same)
			}
			last, x.same = got, true
		}
	}
}

func poolOf(text string) *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM([]byte(text))
	return p
}

// speak returns a TLS connection to a name from a program inside that trusts the engine's authorities.
func speak(t testing.TB, e *Engine, s *stack.Stack, name string) *tls.Conn {
	t.Helper()
	c := tls.Client(mustDial(t, s, name, 443), &tls.Config{ServerName: name, RootCAs: poolOf(e.trusted.PEM()), NextProtos: []string{"http/1.1"}})
	if err := c.Handshake(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

// clientOf returns an HTTP client inside, with HTTP/2 if both sides have it.
func clientOf(t testing.TB, e *Engine, s *stack.Stack) *http.Client {
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: poolOf(e.trusted.PEM())},
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			name, _, _ := net.SplitHostPort(address)
			return dialName(t, s, name, 443)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %s %s%s", r.Proto, r.Method, r.Host, r.RequestURI, r.Header.Get("X-HTTP-Method-Override"), body)
}

// TestRequestsInsideTLS sends requests of HTTP/2 and HTTP/1 to a server of which some paths are allowed.
func TestRequestsInsideTLS(t *testing.T) {
	e, s := newSeen(t, tell, "GET,POST files.test/pub/**", "!files.test/pub/private/**")
	client := clientOf(t, e, s)
	for _, c := range []struct {
		method, url string
		want        int
	}{
		{"GET", "/pub/a?x=/../y", 200}, {"POST", "/pub/a%20b", 200}, {"PUT", "/pub/a", 403}, {"GET", "/", 403}, {"GET", "/pub", 403}, {"GET", "/public/a", 403},
		{"GET", "/pub/../echo", 403}, {"GET", "/pub/%2e%2e/echo", 403}, {"GET", "/pub/..%2fecho", 403}, {"GET", "/pub//a", 403}, {"GET", "/pub/private/a", 403},
		{"GET", "/pub/%70rivate/a", 403}, {"GET", "/pub/a%252f", 403}, {"TRACE", "/pub/a", 403},
	} {
		r, err := http.NewRequest(c.method, "https://files.test"+c.url, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-HTTP-Method-Override", "DELETE")
		answer, err := client.Do(r)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.url, err)
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if want := fmt.Sprintf("HTTP/2.0 %s files.test %s text", c.method, c.url); answer.StatusCode != c.want || answer.ProtoMajor != 2 || c.want == 200 && string(text) != want ||
			c.want == 403 && !strings.Contains(string(text), "files.test") {
			t.Errorf("%s %s: %s, %q; want %d, %q", c.method, c.url, answer.Status, text, c.want, want)
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRequest && r.Method == "GET" })
	if r.Path != "/pub/a" || r.Status != 200 || r.Proto != control.ProtoTLS || r.Seen != control.SeenRequest || r.Rule != "GET,POST files.test/pub/** (test)" {
		t.Errorf("%+v", r)
	}
	r = lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRefusal && r.Path == "/pub/private/a" })
	if r.Rule != "files.test/pub/private/** (test)" || !r.Denied() {
		t.Errorf("%+v", r)
	}
}

// TestRawRequestsInsideTLS sends requests that an HTTP library does not send.
func TestRawRequestsInsideTLS(t *testing.T) {
	e, s := newSeen(t, tell, "files.test/pub/**", "api.test")
	for name, c := range map[string]struct {
		sent string
		want []int
	}{
		"own":        {"GET /pub/ HTTP/1.1\r\nHost: files.test:443\r\n\r\n", []int{200}},
		"other host": {"GET /pub/ HTTP/1.1\r\nHost: api.test\r\n\r\n", []int{403}},
		"other port": {"GET /pub/ HTTP/1.1\r\nHost: files.test:80\r\n\r\n", []int{403}},
		"absolute":   {"GET https://files.test/pub/ HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403}},
		"connect":    {"CONNECT files.test:443 HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403}},
		"upgrade h2": {"GET /pub/ HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", []int{403}},
		"star":       {"OPTIONS * HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403}},
		"smuggled":   {"POST /pub/ HTTP/1.1\r\nHost: files.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /echo HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{200, 403}},
		"pipelined":  {"GET /pub/ HTTP/1.1\r\nHost: files.test\r\n\r\nGET /echo HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{200, 403}},
		"websocket":  {"GET /echo HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", []int{403}},
	} {
		wantAnswers(t, speak(t, e, s, "files.test"), name, c.sent, c.want)
	}
	// The engine does not answer in place of other servers: their certificate comes from outside.
	err := tls.Client(mustDial(t, s, "api.test", 443), &tls.Config{ServerName: "api.test", RootCAs: poolOf(e.trusted.PEM())}).Handshake()
	if err == nil {
		t.Error("requests to a server are seen without need")
	}
}

// TestStreamsInsideTLS checks that each part of an answer arrives at once, and that a WebSocket carries bytes both ways.
func TestStreamsInsideTLS(t *testing.T) {
	next := make(chan struct{})
	e, s := newSeen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ws" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			io.Copy(c, rw)
			c.Close()
			return
		}
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "18")
		}
		for range 3 {
			io.WriteString(w, "event\n")
			http.NewResponseController(w).Flush()
			<-next
		}
	}, "GET files.test")
	for _, path := range []string{"/events", "/length"} {
		answer, err := clientOf(t, e, s).Get("https://files.test" + path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != "event" {
				t.Fatalf("%s, event %d: %q, %v", path, i, lines.Text(), lines.Err())
			}
			next <- struct{}{}
		}
		answer.Body.Close()
	}
	c := speak(t, e, s, "files.test")
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	defer answer.Body.Close()
	got := make([]byte, 5)
	io.WriteString(c, "hello")
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestServerIsVerified checks that no request reaches a server that cannot prove its name, and that a program that does not trust the network
// ends its connection.
func TestServerIsVerified(t *testing.T) {
	asked := make(chan string, 10)
	e, s := newSeen(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }, "GET files.test", "GET other.example")
	client := clientOf(t, e, s)
	answer, err := client.Get("https://files.test/")
	if err != nil || answer.StatusCode != 200 {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	<-asked
	refusal, err := client.Get("https://other.example/secret")
	if err != nil || refusal.StatusCode != http.StatusBadGateway {
		t.Fatal(refusal, err)
	}
	defer refusal.Body.Close()
	text, _ := io.ReadAll(refusal.Body)
	if !strings.Contains(string(text), "certificate is not trusted") || len(asked) > 0 {
		t.Errorf("%q, %d requests", text, len(asked))
	}
	if err := helloTo(mustDial(t, s, "files.test", 443), "files.test"); err == nil {
		t.Error("a program trusts an unknown authority")
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Verdict == control.VerdictFailed && r.Kind == control.KindFlow })
	if !strings.Contains(r.Reason, "does not accept the certificate") {
		t.Errorf("%+v", r)
	}
	e.roots = func() (*x509.CertPool, error) { return nil, errors.New("no such file") }
	if err := helloTo(mustDial(t, s, "files.test", 443), "files.test"); err == nil {
		t.Error("a connection without certificates of the machine")
	}
	r = lastRecord(t, e, func(r control.Record) bool {
		return r.Verdict == control.VerdictFailed && strings.Contains(r.Reason, "no such file")
	})
	if !strings.HasPrefix(r.Reason, "read the certificates that this machine trusts") {
		t.Errorf("%+v", r)
	}
}

// TestChangesEndRequests changes rules while an answer comes. Requests that are still allowed go on.
func TestChangesEndRequests(t *testing.T) {
	e, s := newSeen(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "files.test/a", "files.test/b", "api.test")
	client, before := clientOf(t, e, s), e.trusted.PEM()
	begin := func(path string) *bufio.Reader {
		answer, err := client.Get("https://files.test" + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		r := bufio.NewReader(answer.Body)
		if line, err := r.ReadString('\n'); line != "begun\n" {
			t.Fatal(line, err)
		}
		return r
	}
	one, other := begin("/a"), begin("/b")
	opaque := mustDial(t, s, "api.test", 443)
	opaque.Write(clientHello(t, "api.test"))
	if _, err := opaque.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	e.obey(control.Order{Rules: new(rules(2, "files.test/b", "GET api.test"))})
	if _, err := one.ReadByte(); err == nil {
		t.Error("the answer goes on")
	}
	if _, err := io.Copy(io.Discard, opaque); err == nil {
		t.Error("a connection goes on whose requests are not seen")
	}
	if after := e.trusted.PEM(); !strings.Contains(after, before) || after == before {
		t.Error("the trust for the first server was changed, or none was added for the second")
	}
	e.obey(control.Order{Rules: new(rules(3, "files.test"))})
	if e.trusted.PEM() != "" {
		t.Error("trust remains without rules of requests")
	}
	e.obey(control.Order{Rules: new(rules(4, "files.test", "!files.test/b"))})
	if _, err := other.ReadByte(); err == nil {
		t.Error("the other answer goes on")
	}
}

// TestSuccessorIsTrusted gives a second engine the authorities that the first one has reported.
func TestSuccessorIsTrusted(t *testing.T) {
	first, _ := newSeen(t, tell, "GET files.test")
	all, err := first.trusted.Save()
	if err != nil {
		t.Fatal(err)
	}
	order := writable(rules(1, "GET files.test"))
	order.Authorities = &control.Authorities{All: all}
	second, s := join(t, Settings{World: &fakeWorld{serve: echo}, First: order})
	if second.trusted.PEM() != first.trusted.PEM() || first.state().Authorities != first.trusted.PEM() {
		t.Error("programs inside would have to trust another authority")
	}
	speak(t, first, s, "files.test").Close()
}

// FuzzServedRequests sends any bytes as requests to a server of which some paths are allowed. What is passed on must be for one of them.
func FuzzServedRequests(f *testing.F) {
	for _, seed := range []string{
		"GET /pub/a HTTP/1.1\r\nHost: files.test\r\n\r\n", "GET /pub/../b HTTP/1.1\r\nHost: files.test\r\n\r\n", "GET /pub/%2e%2e/b HTTP/1.1\r\nHost: files.test\r\n\r\n",
		"GET //files.test/pub/ HTTP/1.1\r\nHost: files.test\r\n\r\n", "GET /pub/a?b#c HTTP/1.0\r\nHost: files.test\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	fuzzRequests(f, &Policy{Allow: mustParse(f, "GET files.test/pub/**")}, 80, func(t *testing.T, r *http.Request) {
		if path := r.URL.EscapedPath(); r.Method != "GET" || !strings.HasPrefix(r.URL.Path, "/pub/") || strings.Contains(path, "..%") || strings.Contains(r.URL.Path, "/../") {
			t.Errorf("passed on: %q %q", r.Method, r.RequestURI)
		}
	})
}

// serveRequests answers the HTTP requests of one connection as a server outside does.
func serveRequests(ctx context.Context, c net.Conn, secure *tls.Config, h http.Handler) error {
	return single.Serve(ctx, c, secure, share.Large.Server(), h)
}
