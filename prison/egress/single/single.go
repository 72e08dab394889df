// Package single serves HTTP on one connection.
package single

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/git-airlock/git-airlock/prison/egress/hello"
)

// maxHeaders bounds the headers of a request, in bytes.
const maxHeaders = 64 << 10

// Serve answers the HTTP requests of one connection, and returns when it is closed. Only the handshake with the TLS configuration secure,
// which can be nil, returns an error. settings apply if both sides speak HTTP/2.
func Serve(ctx context.Context, c net.Conn, secure *tls.Config, settings *http.HTTP2Config, h http.Handler) error {
	one := &conn{Conn: c, closed: make(chan struct{})}
	s := http.Server{
		Handler: h, ReadHeaderTimeout: hello.Patience, MaxHeaderBytes: maxHeaders, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }, DisableGeneralOptionsHandler: true,
	}
	l := &listener{conn: one, closed: one.closed}
	if secure != nil {
		encrypted := tls.Server(one, secure)
		one.keeps = true
		err := handshake(ctx, encrypted)
		if one.keeps = false; err != nil {
			one.Close()
			return hello.Alerted(one.last, err)
		}
		l.conn, s.TLSConfig, s.Protocols = encrypted, secure, new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.HTTP2 = settings
	}
	s.Serve(l) //nolint:errcheck // Serve always ends with the error of the second Accept
	s.Close()
	return nil
}

func handshake(ctx context.Context, c *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, hello.Patience)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// conn is a connection whose channel is closed with it.
type conn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	keeps  bool   // Read keeps the last bytes in last
	last   []byte // at most [hello.AlertSize]
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.keeps {
		c.last = append(c.last, p[:n]...)
		c.last = append([]byte{}, c.last[max(0, len(c.last)-hello.AlertSize):]...)
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// CloseWrite closes the connection for writing.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.New("a connection that cannot end in one direction")
}

// listener has one connection, and ends with it.
type listener struct {
	conn     net.Conn
	closed   <-chan struct{}
	accepted bool
}

func (l *listener) Accept() (net.Conn, error) {
	if !l.accepted {
		l.accepted = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (*listener) Close() error { return nil }

func (l *listener) Addr() net.Addr { return l.conn.LocalAddr() }
