package egress

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

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
