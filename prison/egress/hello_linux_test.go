package egress

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
)

// record returns a TLS record.
func tlsRecord(kind byte, content []byte) []byte {
	return append([]byte{kind, 3, 3, byte(len(content) >> 8), byte(len(content))}, content...)
}

// retryRequest is a server hello that asks for a second client hello, after a warning.
var retryRequest = append(tlsRecord(21, []byte{1, 112}), tlsRecord(22, append([]byte{2, 0, 0, 38, 3, 3},
	"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c\x00\x00\x00\x00"...))...)

// clientHello returns the client hello of crypto/tls for a server.
func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go helloTo(theirs, name)
	h, err := hello.Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	return h.Bytes
}

// TestSecondHelloNamesItsServer sends second client hellos to a server that asks for one.
func TestSecondHelloNamesItsServer(t *testing.T) {
	arrived := make(chan string, 100)
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		defer c.Close()
		if _, err := hello.Read(c); err != nil {
			return
		}
		c.Write(retryRequest)
		h, err := hello.ReadSecond(c)
		if err != nil {
			arrived <- ""
			return
		}
		arrived <- h.Name
	}}, "files.test", "api.test")
	good, evil := clientHello(t, "files.test"), clientHello(t, "api.test")
	change, early := tlsRecord(20, []byte{1}), tlsRecord(23, make([]byte, 200))
	for name, x := range map[string]struct {
		after []byte // the answer of the server
		along []byte // with the first hello
		want  string
	}{
		"the same":                 {good, nil, "files.test"},
		"after a change":           {append(change, good...), nil, "files.test"},
		"another":                  {evil, nil, ""},
		"another after a change":   {append(change, evil...), nil, ""},
		"another sent at once":     {nil, append(change, evil...), ""},
		"another after early data": {evil, early, ""},
		"the same after early":     {good, early, "files.test"},
		"no hello":                 {tlsRecord(22, []byte{16, 0, 0, 1, 0}), nil, ""},
	} {
		c := mustDial(t, s, "files.test", 443)
		c.SetDeadline(time.Now().Add(patience))
		c.Write(append(append([]byte{}, good...), x.along...))
		if _, err := io.ReadFull(c, make([]byte, len(retryRequest))); err != nil {
			t.Fatalf("%s: the answer: %v", name, err)
		}
		c.Write(x.after)
		if x.want == "" {
			if alert, _ := io.ReadAll(c); string(alert) != string(accessDenied) {
				t.Errorf("%s: the client reads %x", name, alert)
			}
		}
		if got := <-arrived; got != x.want {
			t.Errorf("%s: the server hears %q, want %q", name, got, x.want)
		}
		c.Close()
	}
	lastRecord(t, e, func(r control.Record) bool {
		return r.Kind == control.KindRefusal && strings.Contains(r.Reason, "api.test")
	})
	// Two hellos in one record.
	c := mustDial(t, s, "files.test", 443)
	c.Write(tlsRecord(22, append(append([]byte{}, good[5:]...), evil[5:]...)))
	if alert, _ := io.ReadAll(c); string(alert) != string(accessDenied) {
		t.Errorf("two hellos in a record: %x", alert)
	}
}

// TestRetriedHandshake lets clients and servers of crypto/tls agree in one and in two steps, and copy a lot.
func TestRetriedHandshake(t *testing.T) {
	var trusted authority.Set
	if err := trusted.Update([]string{"files.test"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	leaf, err := trusted.Leaf("files.test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	retried := make(chan bool, 10)
	_, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		server := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}, CurvePreferences: []tls.CurveID{tls.CurveP384}})
		defer server.Close()
		if server.Handshake() != nil {
			return
		}
		retried <- server.ConnectionState().HelloRetryRequest
		io.Copy(server, server)
	}}, "files.test")
	for curve, want := range map[tls.CurveID]bool{tls.X25519: true, tls.CurveP384: false} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c := tls.Client(mustDial(t, s, "files.test", 443), &tls.Config{
				ServerName: "files.test", InsecureSkipVerify: true, MaxVersion: version, CurvePreferences: []tls.CurveID{curve, tls.CurveP384},
			})
			sent := strings.Repeat("x", 1<<20)
			go io.WriteString(c, sent)
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || string(got) != sent {
				t.Errorf("curve %v, version %x: %v", curve, version, err)
			}
			if again := <-retried; again != (want && version == tls.VersionTLS13) {
				t.Errorf("curve %v, version %x: retried %v", curve, version, again)
			}
			c.Close()
		}
	}
}

// TestUnansweredHello has a server that ends the connection within its answer. The record says so in words.
func TestUnansweredHello(t *testing.T) {
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		hello.Read(c)
		c.Write(retryRequest[:3])
		c.Close()
	}}, "files.test")
	c := mustDial(t, s, "files.test", 443)
	defer c.Close()
	c.Write(clientHello(t, "files.test"))
	io.Copy(io.Discard, c)
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindFlow && r.Verdict == control.VerdictFailed })
	if r.Reason != "the server closed the connection before its answer" {
		t.Errorf("reason %q", r.Reason)
	}
}

// TestUnfinishedClients connects clients that send nothing, half a hello, or only a hello. The record has no refusal, because no rule refuses them.
func TestUnfinishedClients(t *testing.T) {
	e, s := newSeen(t, tell, "files.test", "GET api.test")
	whole := clientHello(t, "api.test")
	const silent, ended = "the client sent nothing", "the client closed the connection during the handshake"
	for _, x := range []struct {
		name string
		sent []byte
		want string
	}{{"files.test", nil, silent}, {"api.test", nil, silent}, {"files.test", whole[:40], ended}, {"api.test", whole, ended}} {
		c := mustDial(t, s, x.name, 443)
		c.Write(x.sent)
		c.Close()
		lastRecord(t, e, func(r control.Record) bool {
			return r.Kind == control.KindFlow && r.Verdict == control.VerdictFailed && r.Name == x.name && r.Reason == x.want
		})
	}
	records, _ := e.journal.Unwritten()
	for _, r := range records {
		if r.Kind == control.KindRefusal {
			t.Errorf("a refusal: %+v", r)
		}
	}
}
