package upstream

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// failing answers CONNECT with a text, whatever the target is. The password of the request is in the text where it has %s.
func failing(answer string) func(net.Conn) {
	return func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		io.WriteString(c, strings.ReplaceAll(answer, "%s", r.Header.Get("Proxy-Authorization")))
	}
}

// TestAccess has answers to CONNECT. The state has the cause of each failure in front, and has none after the next success. Neither the
// state nor the error has the user, the password or the address of the proxy.
func TestAccess(t *testing.T) {
	const end = "\r\nContent-Length: 0\r\n\r\n"
	for _, c := range []struct {
		answer, want string
		login        bool
	}{
		{"HTTP/1.1 200 OK" + end, "", false}, {"HTTP/1.1 201 Created" + end, "", false}, {"HTTP/1.0 299 Own" + end, "", false},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK" + end, "", false},
		{"HTTP/1.1 407 %s" + end, "it answers 407 Proxy Authentication Required", true}, {"HTTP/1.1 403 No" + end, "it answers 403 Forbidden", false},
		{"HTTP/1.1 101 Switching Protocols" + end, "it answers 101 Switching Protocols", false}, {"HTTP/1.1 799 %s" + end, "it answers 799", false},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 502 Bad" + end, "it answers 502 Bad Gateway", false},
		{"%s\r\n\r\n", "its answer is not HTTP", false}, {"HTTP/1.1 2%s" + end, "its answer is not HTTP", false},
		{"", "it ends the connection", false}, {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxAnswer/25+1), "its answer is too long", false},
	} {
		p, password, err := Parse("http://ada:s3cret%20word@" + serve(t, failing(c.answer)))
		if err != nil {
			t.Fatal(err)
		}
		var a Access
		a.Take(map[string]string{control.ProxyPassword: password})
		a.note(p, "before.test:443", errors.New("an earlier failure"))
		w := a.Way(p, nil)
		conn, err := w.Dial(t.Context(), "files.test:443")
		if conn != nil {
			conn.Close()
		}
		f := a.Failed(p)
		if c.want == "" {
			if f != nil || err != nil {
				t.Errorf("%.30q: %+v, %v", c.answer, f, err)
			}
			continue
		}
		if f == nil || !strings.HasPrefix(f.Reason, c.want) || f.Login != c.login || f.Target != "files.test:443" || f.Time.IsZero() {
			t.Errorf("%.30q: %+v, want %q", c.answer, f, c.want)
			continue
		}
		if text := fmt.Sprint(f.Reason, err); strings.Contains(text, "YWRh") || strings.Contains(text, "s3cret") || strings.Contains(text, "ada") || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%.30q: %s", c.answer, text)
		}
		if a.Failed(Proxy{}) != nil {
			t.Error("another proxy fails")
		}
	}
}

// TestCause connects through proxies that fail, and checks the cause. A connection that the caller ends is not a failure of the proxy.
func TestCause(t *testing.T) {
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	plain := serve(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		io.Copy(io.Discard, c)
	})
	refused := serve(t, func(c net.Conn) {
		b := make([]byte, 64)
		c.Read(b)
		c.Write([]byte{5, 0})
		c.Read(b)
		c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
	})
	for at, want := range map[string]string{
		"http://127.0.0.1:1": "no connection to it: connection refused", "socks5h://127.0.0.1:1": "no connection to it: connection refused",
		"socks5h://" + refused: "it answers: connection refused", "https://" + plain: "tls: first record does not look like a TLS handshake",
	} {
		p, _, err := Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		var a Access
		_, err = a.Way(p, func() (*x509.CertPool, error) { return x509.NewCertPool(), nil }).Dial(t.Context(), "files.test:443")
		if f := a.Failed(p); f == nil || f.Reason != want || err == nil || err.Error() != "the proxy fails: "+want {
			t.Errorf("%s: %+v, %v", at, f, err)
		}
	}
	p, _, err := Parse("http://" + silent)
	if err != nil {
		t.Fatal(err)
	}
	var a Access
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Way(p, nil).Dial(ctx, "files.test:443"); err == nil || a.Failed(p) != nil {
		t.Errorf("%v, %+v", err, a.Failed(p))
	}
	if cause(fmt.Errorf("read: %w", context.DeadlineExceeded)) != "it does not answer" {
		t.Error("a proxy that does not answer")
	}
}
