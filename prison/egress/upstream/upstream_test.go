package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"http://proxy.test:3128": "http://proxy.test:3128", "https://u:p%40ss@proxy.test:443/": "https://u@proxy.test:443",
		"socks5h://[::1]:1080": "socks5h://[::1]:1080", "http://u@10.0.0.1:80": "http://u@10.0.0.1:80",
	} {
		p, password, err := Parse(text)
		if err != nil || p.String() != want || (password == "p@ss") != strings.Contains(text, "%40") {
			t.Errorf("%s: %s, %q, %v", text, p, password, err)
		}
		if again, _, err := Parse(p.String()); err != nil || again != p {
			t.Errorf("%s: %s, %v", p, again, err)
		}
	}
	for _, bad := range []string{"", "proxy.test:3128", "http://proxy.test", "ftp://h:1", "socks5://h:1", "http://:80", "http://u:secret@h:80/x", "http://u:secret@h:80?x", "http://u:secret@h:8 0", "http://u:secret@h:x"} {
		if p, _, err := Parse(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", bad, p, err)
		}
	}
	if text := (Proxy{}).String(); text != "" {
		t.Error(text)
	}
}

// TestParsePassword has passwords that RFC 7617 allows, and some that no proxy can get. The error names the part, and not the password.
func TestParsePassword(t *testing.T) {
	long := strings.Repeat("x", 256)
	for text, want := range map[string]string{
		"http://ada:p%C3%A4ss%20word@h:1": "p\u00e4ss word", "http://ada:%20%3A%2F%40~@h:1": " :/@~", "http://ada:@h:1": "", "https://ada:" + long + "@h:1": long,
	} {
		if _, password, err := Parse(text); password != want || err != nil {
			t.Errorf("%s: %q, %v", text, password, err)
		}
	}
	for text, want := range map[string]string{
		"http://ada:s3cret%0Aword@h:1": "the password has control characters", "http://ada:s3cret%C2%85@h:1": "the password has control characters",
		"http://ada:s3cret%E4@h:1": "the password is not UTF-8", "socks5h://ada:" + long + "@h:1": "the password is longer than 255 bytes",
		"http://a%00da:s3cret@h:1": "the user has control characters",
	} {
		if _, _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// serve answers each connection by h, and returns the address.
func serve(t *testing.T, h func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); h(c) }()
		}
	}()
	return l.Addr().String()
}

// echo is a server that speaks first and then sends all back.
func echo(c io.ReadWriter) {
	io.WriteString(c, "hello\n")
	io.Copy(c, c)
}

// connectProxy answers CONNECT for one target, and is the server as well.
func connectProxy(c net.Conn) {
	from := bufio.NewReader(c)
	r, err := http.ReadRequest(from)
	if err != nil {
		return
	}
	user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	switch {
	case r.Host == "endless.test:443":
		for {
			if _, err := io.WriteString(c, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	case r.Host == "silent.test:443":
		io.Copy(io.Discard, from)
	case r.Method != http.MethodConnect || user != "ada" || password != "s3cret:word":
		fmt.Fprint(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
	case r.Host != "files.test:443":
		fmt.Fprint(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
	default:
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		echo(struct {
			io.Reader
			io.Writer
		}{from, c})
	}
}

// socksProxy speaks SOCKS 5 with a name and a password (RFC 1928, RFC 1929) for one target, and is the server as well.
func socksProxy(c net.Conn) {
	buf := make([]byte, 256)
	read := func(n int) []byte {
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			panic(http.ErrAbortHandler)
		}
		return bytes.Clone(buf[:n])
	}
	defer func() { _ = recover() }()
	read(int(read(2)[1]))
	c.Write([]byte{5, 2})
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	if user != "ada" || password != "s3cret:word" {
		c.Write([]byte{1, 1})
		return
	}
	c.Write([]byte{1, 0})
	if kind := read(4)[3]; kind != 3 {
		return
	}
	name := string(read(int(read(1)[0])))
	if read(2); name != "files.test" {
		c.Write([]byte{5, 2, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	echo(c)
}

// TestDial talks to a server through each kind of proxy. A server that speaks first loses nothing.
func TestDial(t *testing.T) {
	var certificates authority.Set
	if err := certificates.Update([]string{"localhost"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return certificates.Leaf("localhost", time.Now())
	}}
	roots := func() (*x509.CertPool, error) {
		p := x509.NewCertPool()
		p.AppendCertsFromPEM([]byte(certificates.PEM()))
		return p, nil
	}
	plain, socks := serve(t, connectProxy), serve(t, socksProxy)
	encrypted := serve(t, func(c net.Conn) { connectProxy(tls.Server(c, secure)) })
	_, port, _ := net.SplitHostPort(encrypted)
	for _, at := range []string{"http://ada@" + plain, "socks5h://ada@" + socks, "https://ada@localhost:" + port} {
		t.Run(at[:4], func(t *testing.T) {
			p, _, err := Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			w := Way{Proxy: p, Password: "s3cret:word", Roots: roots}
			c, err := w.Dial(t.Context(), "files.test:443")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.RemoteAddr().String() != "files.test:443" {
				t.Error(c.RemoteAddr())
			}
			io.WriteString(c, "text")
			if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			if text, err := io.ReadAll(c); string(text) != "hello\ntext" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			if _, err := w.Dial(t.Context(), "other.test:443"); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
			w.Password = "wrong"
			if _, err := w.Dial(t.Context(), "files.test:443"); err == nil {
				t.Error("the password does not matter")
			}
		})
	}
}

// TestDialEnds has a proxy that sends headers without an end, one that answers nothing, and none at all.
func TestDialEnds(t *testing.T) {
	p, _, err := Parse("http://ada@" + serve(t, connectProxy))
	if err != nil {
		t.Fatal(err)
	}
	w := Way{Proxy: p}
	if _, err := w.Dial(t.Context(), "endless.test:443"); err == nil {
		t.Error("headers without an end")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.Dial(ctx, "silent.test:443"); err == nil {
		t.Error("no answer")
	}
	w.port = "1"
	if _, err := w.Dial(t.Context(), "files.test:443"); err == nil || strings.Contains(err.Error(), "ada") {
		t.Error(err)
	}
}
