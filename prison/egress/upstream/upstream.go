// Package upstream makes connections through a proxy of the network that this machine is in: over HTTP with CONNECT (RFC 9110,
// section 9.3.6), with or without TLS, or over SOCKS 5 (RFC 1928).
package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/proxy"
)

const (
	// patience is the time until a connection through the proxy must be made.
	patience = 20 * time.Second
	// maxAnswer bounds the answers of a proxy to CONNECT, in bytes.
	maxAnswer = 64 << 10
	// maxWord and maxSocksWord bound the user and the password, in bytes. Those of SOCKS 5 have a length of one byte (RFC 1929).
	maxWord, maxSocksWord = 16 << 10, 255
)

// schemes are the schemes of a proxy's URL. With each of them, the proxy looks names up.
var schemes = []string{"http", "https", "socks5h"}

// Proxy is a proxy without its password. The zero value means no proxy.
type Proxy struct{ scheme, host, port, user string }

// Parse reads SCHEME://[USER[:PASSWORD]@]HOST:PORT. No error contains the password.
func Parse(text string) (p Proxy, password string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return p, "", errors.New("not a URL") // the error of url.Parse contains the password
	}
	p = Proxy{scheme: u.Scheme, host: u.Hostname(), port: u.Port()}
	switch {
	case !slices.Contains(schemes, u.Scheme):
		return p, "", errors.New("the scheme is not http, https or socks5h")
	case p.host == "":
		return p, "", errors.New("the host is missing")
	case p.port == "":
		return p, "", errors.New("the port is missing")
	case !isPort(p.port):
		return p, "", errors.New("the port is not a number from 1 to 65535")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return p, "", errors.New("nothing may follow the port")
	}
	if u.User == nil {
		return p, "", nil
	}
	p.user = u.User.Username()
	password, _ = u.User.Password()
	if err := p.checkWord("user", p.user); err != nil {
		return p, "", err
	}
	return p, password, p.checkWord("password", password)
}

// checkWord returns an error for a user or a password that the proxy cannot get: it is UTF-8 without control characters (RFC 7617, section
// 2.1). The error does not contain the word.
func (p Proxy) checkWord(kind, word string) error {
	most := maxWord
	if p.scheme == "socks5h" {
		most = maxSocksWord
	}
	switch {
	case !utf8.ValidString(word):
		return fmt.Errorf("the %s is not UTF-8", kind)
	case strings.ContainsFunc(word, unicode.IsControl):
		return fmt.Errorf("the %s has control characters", kind)
	case len(word) > most:
		return fmt.Errorf("the %s is longer than %d bytes", kind, most)
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// String returns the URL of the proxy, without its password.
func (p Proxy) String() string {
	if p.scheme == "" {
		return ""
	}
	u := url.URL{Scheme: p.scheme, Host: net.JoinHostPort(p.host, p.port)}
	if p.user != "" {
		u.User = url.User(p.user)
	}
	return u.String()
}

// User returns the user of the proxy; empty for none.
func (p Proxy) User() string { return p.user }

// WithoutUser returns the proxy without its user.
func (p Proxy) WithoutUser() Proxy {
	p.user = ""
	return p
}

// Way is a proxy with the secrets and certificates for connections through it.
type Way struct {
	Proxy
	Password string
	Roots    func() (*x509.CertPool, error) // the certificates that this machine trusts, for a proxy with TLS
	Access   *Access                        // gets the result of each connection; nil for none
}

// Dial connects to HOST:PORT through the proxy. The remote address of the connection is that text.
func (w Way) Dial(ctx context.Context, target string) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := w.dial(limited, target)
	if ctx.Err() == nil || err == nil { // otherwise the caller has ended it
		w.Access.note(w.Proxy, target, err)
	}
	if err != nil {
		return nil, &failure{err}
	}
	return c, nil
}

func (w Way) dial(ctx context.Context, target string) (net.Conn, error) {
	at := net.JoinHostPort(w.host, w.port)
	if w.scheme == "socks5h" {
		var login *proxy.Auth
		if w.user != "" {
			login = &proxy.Auth{User: w.user, Password: w.Password}
		}
		var below kept
		d, err := proxy.SOCKS5("tcp", at, login, &below)
		if err == nil {
			_, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", target)
		}
		if err != nil {
			return nil, err
		}
		return &conn{Conn: below.made, from: below.made, target: target}, nil
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	made, err := w.connect(ctx, c, target)
	if err != nil {
		c.Close()
	}
	return made, err
}

// kept makes one connection and keeps it, because the connection that SOCKS5 returns cannot be closed for writing only.
type kept struct{ made net.Conn }

func (k *kept) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	k.made, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return k.made, err
}

func (k *kept) Dial(network, address string) (net.Conn, error) {
	return k.DialContext(context.Background(), network, address)
}

// connect asks a proxy, over a connection to it, to connect to a target.
func (w Way) connect(ctx context.Context, c net.Conn, target string) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	if w.scheme == "https" {
		roots, err := w.Roots()
		if err != nil {
			return nil, err
		}
		secure := tls.Client(c, &tls.Config{ServerName: w.host, RootCAs: roots, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		c = secure
	}
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{"User-Agent": {""}}}
	if w.user != "" {
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(w.user+":"+w.Password)))
	}
	if err := r.Write(c); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: c, N: maxAnswer}
	from := bufio.NewReaderSize(limited, 4<<10)
	switch status, err := readStatus(from, r); {
	case limited.N <= 0:
		return nil, errors.New("its answer is too long")
	case err != nil:
		return nil, err
	case status/100 != 2: // each of these begins the tunnel, RFC 9110, section 9.3.6
		return nil, statusError(status)
	}
	limited.N = math.MaxInt64
	return &conn{Conn: c, from: from, target: target}, ctx.Err()
}

// readStatus reads answers up to the final one, and returns its status. Interim answers come before it (RFC 9110, section 15.2).
func readStatus(from *bufio.Reader, r *http.Request) (int, error) {
	for {
		answer, err := http.ReadResponse(from, r) //nolint:bodyclose // what follows is the connection
		_, isNetwork := errors.AsType[net.Error](err)
		switch {
		case isNetwork || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return 0, err
		case err != nil:
			return 0, errNotHTTP
		}
		if answer.StatusCode/100 != 1 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer.StatusCode, nil
		}
	}
}

// conn is a connection through a proxy.
type conn struct {
	net.Conn
	from   io.Reader // has the bytes that the server sent right after the proxy's answer
	target string
}

func (c *conn) Read(p []byte) (int, error) { return c.from.Read(p) }

// CloseWrite closes the connection for writing, if it can.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil // the other direction goes on
}

// RemoteAddr returns the target instead of the address of the proxy.
func (c *conn) RemoteAddr() net.Addr { return address(c.target) }

// address is HOST:PORT.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
