package egress

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
)

// encryptedTo returns the configuration of a client that names public in its hello, and hidden in the encrypted part (RFC 9849, section 4).
func encryptedTo(t *testing.T, public, hidden string) *tls.Config {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	contents := append([]byte{1, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...)              // number, kind of key, key
	contents = append(contents, 0, 4, 0, 1, 0, 1, 0, byte(len(public)))                    // ciphers, longest name
	contents = append(append(contents, public...), 0, 0)                                   // no extensions
	list := append([]byte{0, byte(len(contents) + 4), 0xfe, 0x0d, 0}, byte(len(contents))) // version 0xfe0d
	return &tls.Config{ServerName: hidden, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: append(list, contents...)}
}

// TestEncryptedHelloWhereTLSEnds opens connections with encrypted client hellos to hosts with a credential, with a rule about requests, and
// with a rule about the host alone. The network ends TLS at the first two, and decides by the name that the client shows.
func TestEncryptedHelloWhereTLSEnds(t *testing.T) {
	e, s := newSeen(t, tell, "api.test", "GET paths.test", "files.test")
	e.obey(control.Order{Rules: new(withCredentials(2, "api.test", "GET paths.test", "files.test"))})
	for _, x := range []struct {
		to, public string
		allowed    bool
	}{
		{"api.test", "api.test", true}, {"paths.test", "paths.test", true}, {"files.test", "files.test", false},
		{"api.test", "files.test", false}, {"paths.test", "evil.test", false},
	} {
		config := encryptedTo(t, x.public, "evil.test")
		config.RootCAs = poolOf(e.trusted.PEM())
		err := tls.Client(mustDial(t, s, x.to, 443), config).Handshake()
		// The client learns, from a server with a certificate for the name it has shown, that nobody could read the other name.
		if _, rejected := errors.AsType[*tls.ECHRejectionError](err); rejected != x.allowed {
			t.Errorf("%s as %s: %v", x.to, x.public, err)
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRefusal && r.Name == "files.test" })
	if r.Reason != control.ReasonEncrypted || r.Final() {
		t.Errorf("%+v", r)
	}
	lastRecord(t, e, func(r control.Record) bool {
		return r.Kind == control.KindRefusal && r.Name == "paths.test" && strings.Contains(r.Reason, "evil.test") && r.Final()
	})
}

// TestSecondHelloStaysReadable sends an encrypted second client hello on a connection whose bytes are copied.
func TestSecondHelloStaysReadable(t *testing.T) {
	arrived := make(chan bool, 1)
	e, s := newGuarded(t, &fakeWorld{serve: func(c net.Conn) {
		defer c.Close()
		if _, err := hello.Read(c); err != nil {
			return
		}
		c.Write(retryRequest)
		_, err := hello.ReadSecond(c)
		arrived <- err == nil
	}}, "files.test")
	c := mustDial(t, s, "files.test", 443)
	c.Write(clientHello(t, "files.test"))
	if _, err := io.ReadFull(c, make([]byte, len(retryRequest))); err != nil {
		t.Fatal(err)
	}
	go tls.Client(c, encryptedTo(t, "files.test", "evil.test")).Handshake()
	if <-arrived {
		t.Error("the server has read the second hello")
	}
	lastRecord(t, e, func(r control.Record) bool {
		return r.Kind == control.KindRefusal && r.Reason == control.ReasonEncrypted
	})
}
