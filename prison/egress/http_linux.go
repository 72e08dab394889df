package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
)

const (
	maxHeaders = 64 << 10
	// maxAnswerHeaders bounds what a server says before its content.
	maxAnswerHeaders = 1 << 20
)

var quiet = log.New(io.Discard, "", 0)

// serveRequests answers the HTTP requests of one connection, and returns when it is closed.
func serveRequests(ctx context.Context, c net.Conn, h http.Handler) {
	one := &oneConn{Conn: c, closed: make(chan struct{})}
	s := http.Server{
		Handler: h, ReadHeaderTimeout: helloPatience, MaxHeaderBytes: maxHeaders, ErrorLog: quiet,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.Serve(&oneListener{conn: one}) //nolint:errcheck // it says that there is no second connection
	s.Close()
}

// oneConn is a connection that says when it is closed.
type oneConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *oneConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// CloseWrite passes on that nothing follows.
func (c *oneConn) CloseWrite() error { return closeWrite(c.Conn) }

// oneListener has one connection, and ends with it.
type oneListener struct {
	conn  *oneConn
	given bool
}

func (l *oneListener) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

func (*oneListener) Close() error { return nil }

func (l *oneListener) Addr() net.Addr { return l.conn.LocalAddr() }

// serveHTTP passes requests on, each judged by itself. They are read and written anew, so that both sides agree on where
// each ends.
func (e *Engine) serveHTTP(f *flow, n end, near *gonet.TCPConn, far net.Conn) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	f.stopWith(func() {
		n.Abort()
		cancel()
	})
	// A server's timeouts count between requests alone, and a request may stop in its middle.
	idle := time.AfterFunc(e.idle, f.abort)
	defer idle.Stop()
	active := func() {
		idle.Reset(e.idle)
		e.changed()
	}
	p := &requests{engine: e, flow: f, first: far}
	transport := &http.Transport{
		DialContext: p.dial, DisableCompression: true, MaxIdleConnsPerHost: 1, MaxConnsPerHost: 1,
		MaxResponseHeaderBytes: maxAnswerHeaders, Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Host, r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it is, also what Go cannot parse
		},
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		ModifyResponse: func(r *http.Response) error {
			p.status = r.StatusCode
			return nil
		},
		ErrorHandler: p.fail,
	}
	serveRequests(ctx, &countedConn{TCPConn: near, flow: f, active: active}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, proxy)
	}))
}

// requests are those of one connection, one after the other.
type requests struct {
	engine *Engine
	flow   *flow
	status int // of the answer

	mu    sync.Mutex
	first net.Conn // made before the connection was accepted
}

// serve judges a request, passes it on if it is allowed, and writes a record.
func (p *requests) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	begun := time.Now()
	p.status = 0
	err := p.judge(r)
	if err == nil {
		err = p.engine.journal.admit()
	}
	record := p.flow.record(control.KindRequest, control.VerdictAllow, "")
	record.Seen, record.Method, record.Path, record.Sent, record.Received = control.SeenRequest, clip(r.Method), clip(r.URL.EscapedPath()), 0, 0
	if err != nil {
		record.Kind, record.Verdict, record.Reason, record.Millis = control.KindRefusal, control.VerdictDeny, clip(err.Error()), 0
		p.engine.countRefusal(record)
		answerDenied(w, r, err)
		return
	}
	w.Header()["Content-Type"], w.Header()["Date"] = nil, nil // none but the server's
	defer func() {
		record.Time, record.Millis, record.Status = time.Now().UTC(), time.Since(begun).Milliseconds(), p.status
		p.engine.journal.end(record)
	}()
	next.ServeHTTP(w, r)
}

// judge returns why a request may not be passed on.
func (p *requests) judge(r *http.Request) error {
	host, err := Canonical(hostOf(r.Host))
	switch {
	case r.Method == http.MethodConnect, !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*":
		return &deniedError{reason: "the request is one for a proxy"}
	case r.ProtoMajor != 1, upgrades(r, "h2c"):
		return &deniedError{reason: "only HTTP/1 is passed on without TLS"}
	case err != nil:
		return &deniedError{reason: err.Error()}
	case host != p.flow.name:
		return &deniedError{reason: "the request is for another host than the connection, " + p.flow.name}
	}
	return nil
}

// hostOf returns the name in a Host header, without the port of plain HTTP.
func hostOf(header string) string { return strings.TrimSuffix(header, ":80") }

func upgrades(r *http.Request, to string) bool {
	for _, value := range r.Header.Values("Upgrade") {
		if strings.Contains(strings.ToLower(value), to) {
			return true
		}
	}
	return false
}

// fail answers a request that could not be passed on.
func (p *requests) fail(w http.ResponseWriter, r *http.Request, err error) {
	var denied *deniedError
	if errors.As(err, &denied) || errors.Is(err, errUnrecorded) {
		p.status = http.StatusForbidden
		answerDenied(w, r, err)
		return
	}
	p.status = http.StatusBadGateway
	w.WriteHeader(p.status)
}

// dial returns the connection that was made first, and later ones by a look-up of their own.
func (p *requests) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	c := p.first
	p.first = nil
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return p.engine.dial(ctx, p.flow)
}

// countedConn counts the bytes of a connection inside.
type countedConn struct {
	*gonet.TCPConn
	flow   *flow
	active func() // called when bytes were read or written
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.flow.sent.Add(int64(n))
	c.active()
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.flow.received.Add(int64(n))
	c.active()
	return n, err
}
