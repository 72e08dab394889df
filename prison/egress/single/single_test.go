package single

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
)

// TestHandshakeReasons compares the reasons for the ledger with what clients do in the handshake. Only the alert that a client does not accept
// the certificate is called so.
func TestHandshakeReasons(t *testing.T) {
	var trusted authority.Set
	if err := trusted.Update([]string{"files.test"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	leaf, err := trusted.Leaf("files.test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(trusted.PEM()))
	trusting := &tls.Config{ServerName: "files.test", RootCAs: roots, Time: func() time.Time { return leaf.Leaf.NotBefore.Add(time.Hour) }}
	stranger, old := trusting.Clone(), trusting.Clone()
	stranger.RootCAs, old.MinVersion, old.MaxVersion = nil, tls.VersionTLS10, tls.VersionTLS11
	for name, x := range map[string]struct {
		config *tls.Config
		pause  time.Duration
		say    string // before the client closes the connection
		want   string
	}{
		"accepts":          {trusting, 0, "", ""},
		"does not":         {stranger, 0, "", control.ReasonCertificate + "tls: "},
		"an old version":   {old, 0, "", "TLS with the client fails: tls: "},
		"after 30 seconds": {trusting, 30 * time.Second, "", ""},
		"after an hour":    {trusting, time.Hour, "", "the client did not finish the handshake in time"},
		"closes":           {trusting, -1, "", "the client closed the connection during the handshake"},
		"OpenSSL":          {trusting, -1, "\x15\x03\x03\x00\x02\x02\x30", control.ReasonCertificate + "tls: unknown certificate authority"},
		"another alert":    {trusting, -1, "\x15\x03\x03\x00\x02\x02\x28", "TLS with the client fails: tls: handshake failure"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				// A pipe has no buffer, and the client sends an alert before it has read all that the server writes.
				client := &pausing{Conn: theirs, buffer: bufio.NewReaderSize(theirs, 1<<16), pause: x.pause, say: x.say}
				tls.Client(client, x.config).HandshakeContext(context.Background())
				theirs.Close()
			}()
			begun, got := time.Now(), ""
			config := &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}
			if err := Serve(t.Context(), ours, config, nil, http.NotFoundHandler()); err != nil {
				got = hello.Reason(err)
			}
			if !strings.HasPrefix(got, x.want) || got != "" && x.want == "" || strings.Contains(got, "files.test") {
				t.Errorf("%s: %q, want %q", name, got, x.want)
			}
			if took := time.Since(begun); took > hello.Patience {
				t.Errorf("%s: the handshake took %s", name, took)
			}
			time.Sleep(2 * time.Hour) // until the client has ended
		})
	}
}

// pausing is a connection of a client that waits after its hello, or closes the connection after the first answer if pause is negative.
type pausing struct {
	net.Conn
	buffer *bufio.Reader
	pause  time.Duration
	say    string
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.pause < 0 {
		defer func() {
			p.Write([]byte(p.say))
			p.Close()
		}()
	}
	time.Sleep(p.pause)
	p.pause = 0
	return p.buffer.Read(b)
}
