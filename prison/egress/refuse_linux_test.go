package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
)

// TestHelloWithOtherName refuses the beginnings of TLS connections that do not name the expected server.
func TestHelloWithOtherName(t *testing.T) {
	for name, h := range map[string]hello.Hello{
		"another":        {Name: "evil.test"},
		"none":           {},
		"an address":     {Name: "192.0.2.1"},
		"NUL":            {Name: "files.test\x00.evil.test"},
		"a subdomain":    {Name: "www.files.test"},
		"full width":     {Name: "\uff46iles.test"},
		"a soft hyphen":  {Name: "fi\u00adles.test"},
		"hiding another": {Name: "files.test", Encrypted: true},
	} {
		if checkHello(h, "files.test", false) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := checkHello(hello.Hello{Name: "files.test", Encrypted: true}, "files.test", true); err != nil {
		t.Error(err)
	}
}

// TestAccessDenied checks the error of a TLS client that is refused.
func TestAccessDenied(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		defer ours.Close()
		if _, err := hello.Read(ours); err == nil {
			ours.Write(accessDenied)
		}
	}()
	theirs.SetDeadline(time.Now().Add(time.Minute))
	err := tls.Client(theirs, &tls.Config{ServerName: "files.test"}).Handshake()
	var alert tls.AlertError
	if !errors.As(err, &alert) && (err == nil || !strings.Contains(err.Error(), "access denied")) {
		t.Errorf("%v", err)
	}
}

// TestRefusalsOfAnOpenNetwork connects to a host that a rule of an open network denies. The clients of HTTP and TLS are told, others see a
// reset. A host that is not denied gets the bytes.
func TestRefusalsOfAnOpenNetwork(t *testing.T) {
	e, s := join(t, Settings{World: &fakeWorld{serve: echo}, Open: true, First: writable(rules(1, "!denied.test", "!some.test/admin/**", "!denied.test:22"))})
	for _, name := range []string{"denied.test", "some.test"} {
		text := wantAnswers(t, mustDial(t, s, name, 80), name, "GET /x HTTP/1.1\r\nHost: "+name+"\r\n\r\n", []int{403})
		if !strings.Contains(text, control.ReasonDenied) {
			t.Errorf("%s: %q", name, text)
		}
		err := tls.Client(mustDial(t, s, name, 443), &tls.Config{ServerName: name}).Handshake()
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", name, err)
		}
		lastRecord(t, e, func(r control.Record) bool { return r.Name == name && r.Port == 443 && r.Denied() })
	}
	if _, err := dialName(t, s, "denied.test", 22); err == nil {
		t.Error("connected to a denied port")
	}
	for _, port := range []uint16{22, 80, 443} {
		c := mustDial(t, s, "files.test", port)
		io.WriteString(c, "text")
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Errorf("port %d: %v", port, err)
		}
	}
}
