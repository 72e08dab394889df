package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/failure"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
	"github.com/git-airlock/git-airlock/prison/egress/request"
	"github.com/git-airlock/git-airlock/prison/egress/share"
	"github.com/git-airlock/git-airlock/prison/egress/single"
)

const (
	// maxAnswerHeaders bounds the headers of an answer, in bytes.
	maxAnswerHeaders = 256 << 10
	// flushAfter is how long content of a known length may wait for more, so that a short answer is written at once. Events and
	// other content without a length do not wait: see [httputil.ReverseProxy].
	flushAfter = time.Millisecond
)

var quiet = log.New(io.Discard, "", 0)

// serveHTTP passes requests on, and decides about each. It parses and rewrites each request, so that both sides agree on where it ends.
// With secure, client and server speak TLS, and the engine answers the client in place of the server. In a flow that is secured, only the
// server speaks TLS.
func (e *Engine) serveHTTP(f *flow, n end, near *countedConn, far net.Conn, secure *tls.Config) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	f.stopWith(func() {
		n.Abort()
		cancel()
	})
	// The timeouts of http.Server apply only between requests, and a request may stop in its middle.
	idle := time.AfterFunc(e.idle, f.abort)
	defer idle.Stop()
	near.active = func() {
		idle.Reset(e.idle)
		e.changed()
	}
	var err error
	p := &requests{engine: e, flow: f, first: far, port: ":80", scheme: "http"}
	if secure != nil {
		p.port = ":443"
	}
	if secure != nil || f.secured {
		p.scheme = "https"
	}
	if p.wide, err = p.transport(); err != nil {
		f.fail(clip(err.Error()))
		return
	}
	p.narrow = p.wide.Clone()
	p.narrow.HTTP2 = share.Client(false)
	defer p.wide.CloseIdleConnections()
	defer p.narrow.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p, FlushInterval: flushAfter, BufferPool: answers{}, ErrorLog: quiet,
		ModifyResponse: p.answered, ErrorHandler: p.fail,
	}
	err = single.Serve(ctx, near, secure, f.size.Server(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.admit(w, r, proxy) }))
	if err != nil {
		f.fail(clip(hello.Reason(err)))
	}
}

// transport returns a transport that connects to the server and checks its certificate.
func (p *requests) transport() (*http.Transport, error) {
	t := &http.Transport{
		DialContext: p.dial, DisableCompression: true, MaxIdleConnsPerHost: 1, MaxConnsPerHost: 1,
		MaxResponseHeaderBytes: maxAnswerHeaders, Protocols: new(http.Protocols), Proxy: credential.NotAgain,
	}
	t.Protocols.SetHTTP1(true)
	if p.scheme == "http" {
		return t, nil
	}
	roots, err := p.engine.roots()
	if err != nil {
		return nil, fmt.Errorf("read the certificates that this machine trusts: %w", err)
	}
	t.TLSClientConfig = &tls.Config{ServerName: p.flow.name, RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost, t.HTTP2 = p.flow.size.Idle, p.flow.size.Upstream, share.Client(true)
	t.TLSHandshakeTimeout = connectPatience
	t.Protocols.SetHTTP2(true)
	return t, nil
}

// rewrite turns an allowed request into the request to the server, with its credential.
func (p *requests) rewrite(r *httputil.ProxyRequest) {
	x := roundTripOf(r.In.Context())
	switch port := strings.HasSuffix(r.In.Host, p.port); {
	case p.flow.secured, x.perRequest && !port:
		r.Out.Host = p.flow.name // a server can have another site for the same name with a dot at its end
	case x.perRequest:
		r.Out.Host = p.flow.name + p.port
	}
	r.Out.URL.Scheme, r.Out.URL.Host = p.scheme, p.flow.name
	r.Out.URL.RawQuery = r.In.URL.RawQuery // unchanged, even if Go cannot parse it
	for _, name := range request.Forwarding {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	r.Out.Trailer = r.In.Trailer // gets its values when the content is read
	if x.perRequest {
		request.Remove(r.Out.Header, request.Overrides)
		request.RemoveVariants(r.Out.Header)
		r.Out.Trailer = nil // some servers read it as headers
		if x.tunnel {
			request.Remove(r.Out.Header, []string{"connection", "upgrade"}) // a server may ignore an upgrade, so the request goes on without it
		}
	}
	x.putCredential(r.Out)
}

// serveTLS answers a TLS client in place of the server, so that the engine sees the requests.
func (e *Engine) serveTLS(f *flow, n end, near *countedConn, far net.Conn) {
	e.serveHTTP(f, n, near, far, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return e.trusted.Leaf(f.name, time.Now()) },
	})
}

// requests handles the requests of one connection.
type requests struct {
	engine *Engine
	flow   *flow
	port   string // a client may append it to the name in a request
	scheme string // of the requests to the server
	// wide sends the requests that have a large window for their answers, and narrow all others.
	wide, narrow *http.Transport

	mu    sync.Mutex
	first net.Conn // to the server, made before the client's connection was accepted; nil once it is used
}

// roundTrip is a request and its answer.
type roundTrip struct {
	method, path string             // the path is decoded
	target       string             // the path to which WebDAV copies or moves; empty for none
	unclear      error              // why rules about requests cannot describe the request
	tunnel       bool               // a protocol other than WebSocket may follow, such as one with more requests
	perRequest   bool               // the rules are about some requests to this server
	guarded      bool               // there is a credential for this server
	end          context.CancelFunc // cancels the request

	used    *credential.Credential // that the request gets; nil for none
	value   string                 // of used
	limit   int                    // of requests a day with used; 0 for none
	waits   bool                   // it has got the value, and no answer
	secrets []secret               // of the server

	status int    // of the answer
	failed string // why the request failed
}

// roundTripKey is the key of the roundTrip of a request in its context.
type roundTripKey struct{}

func roundTripOf(ctx context.Context) *roundTrip {
	if x, ok := ctx.Value(roundTripKey{}).(*roundTrip); ok {
		return x
	}
	return &roundTrip{}
}

// placeKey is the key of the [share.Place] of a request in its context.
type placeKey struct{}

// RoundTrip implements [http.RoundTripper].
func (p *requests) RoundTrip(r *http.Request) (*http.Response, error) {
	if place, _ := r.Context().Value(placeKey{}).(share.Place); place.Wide {
		return p.wide.RoundTrip(r)
	}
	return p.narrow.RoundTrip(r)
}

// admit serves a request unless too many are on their way.
func (p *requests) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	place := p.engine.shares.Begin()
	defer p.engine.shares.End(place)
	switch {
	case place.Dropped:
		panic(http.ErrAbortHandler)
	case place.Refused:
		p.refuse(w, r)
	default:
		p.serve(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, place)), next)
	}
}

// serve decides about a request, passes it on if it is allowed, and writes a record.
func (p *requests) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	begun := time.Now()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	x := &roundTrip{method: r.Method, end: end}
	defer p.flow.finish(x)
	decision, err := p.decide(r, x)
	if err == nil {
		if err = p.engine.journal.Admit(ctx); err == nil {
			if err = p.spend(x); err != nil {
				p.engine.journal.Release()
			}
		}
	}
	record := p.flow.record(control.KindRequest, control.VerdictAllow, "")
	record.Seen, record.Method, record.Path, record.Sent, record.Received = control.SeenRequest, clip(r.Method), clip(r.URL.EscapedPath()), 0, 0
	if x.perRequest && decision.Rule.text != "" {
		record.Rule = decision.label()
	}
	if x.used != nil {
		record.Credential, ctx = x.used.Name, credential.Once(ctx)
	}
	if x.guarded {
		w = finalOnly{w}
	}
	if err != nil {
		record.Kind, record.Verdict, record.Reason, record.Millis = control.KindRefusal, control.VerdictDeny, reasonOf(err), 0
		p.engine.countRefusal(record)
		answerDenied(w, r, p.flow, err)
		return
	}
	defer p.done(x, false)
	w.Header()["Content-Type"], w.Header()["Date"] = nil, nil // so that only the server's are sent
	defer func() {
		record.Time, record.Millis, record.Status = time.Now().UTC(), time.Since(begun).Milliseconds(), x.status
		if x.failed != "" {
			record.Verdict, record.Reason = control.VerdictFailed, clip(x.failed)
		}
		p.engine.journal.End(record)
	}()
	whole := false
	defer func() { // if an answer is cut, send its beginning, so that the client does not take it for one that never began
		if !whole {
			http.NewResponseController(w).Flush() //nolint:errcheck // the client may be gone
		}
	}()
	next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, roundTripKey{}, x)))
	whole = true
}

// decide returns the decision about a request, or an error that says why it may not be passed on.
func (p *requests) decide(r *http.Request, x *roundTrip) (Decision, error) {
	if err := p.checkForm(r); err != nil {
		return Decision{}, &deniedError{reason: err.Error(), final: true}
	}
	// From here on, new rules end the request if they do not allow it.
	if x.read(r); !p.flow.begin(x) {
		return Decision{}, &deniedError{reason: "the connection has ended", final: true}
	}
	rules, at := p.engine.current(), p.flow.at()
	d := rules.DecideAt(p.flow.name, p.flow.to, at)
	if x.perRequest = d.PerRequest; d.Allowed && d.PerRequest {
		d = x.judge(rules, p.flow, at)
	}
	if !d.Allowed {
		refusal := d.refusal()
		refusal.allow = ruleFor(x, p.flow.name, r.URL.EscapedPath())
		return d, refusal
	}
	if err := p.chooseCredential(rules, r, x); err != nil {
		return d, err
	}
	return d, nil
}

// read reads the parts of a request that rules can describe.
func (x *roundTrip) read(r *http.Request) {
	x.path, x.unclear = request.Path(r.URL.EscapedPath())
	upgrade := strings.Join(r.Header.Values("Upgrade"), ",")
	x.tunnel = upgrade != "" && !strings.EqualFold(upgrade, "websocket")
	for name, values := range r.Header {
		if credential.PlainName(name) == "destination" && x.unclear == nil {
			x.target, x.unclear = request.Target(strings.Join(values, "\n"))
		}
	}
}

// judge decides about a request on a connection with [Decision.PerRequest] to an address.
func (x *roundTrip) judge(rules *Policy, f *flow, at netip.Addr) Decision {
	d := rules.Request(f.name, f.to.Port(), at, x.method, x.path)
	if d.Allowed && x.target != "" {
		d = rules.Request(f.name, f.to.Port(), at, x.method, x.target)
	}
	final := rules.seesAll(f.name, rules.leaving(f.name, f.to.Port()))
	switch {
	case x.method == http.MethodTrace:
		return Decision{Reason: "TRACE is never passed on", Final: true}
	case x.unclear != nil && (d.Allowed || final && d.Reason == reasonNoRule):
		return Decision{Reason: x.unclear.Error(), Final: final}
	}
	return d
}

// chooseCredential finds the credential that a request gets, and refuses a request with any other.
func (p *requests) chooseCredential(rules *Policy, r *http.Request, x *roundTrip) error {
	here, elsewhere := rules.splitCredentials(p.flow.name, x.method, x.path, x.target)
	if x.guarded = rules.guards(p.flow.name); x.guarded {
		x.secrets = p.engine.secretsOf(rules, p.flow.name)
	}
	used, err := credential.Find(r.Header, r.URL.RawQuery, x.guarded, here, elsewhere)
	if used == nil || err != nil {
		if err != nil {
			err = &deniedError{reason: err.Error(), final: true}
		}
		return err
	}
	i := slices.IndexFunc(x.secrets, func(s secret) bool { return s.Name == used.Name })
	if i < 0 {
		return &deniedError{reason: "the credential " + used.Name + " has no value", final: true, status: http.StatusBadGateway}
	}
	x.used, x.value, x.limit = used, x.secrets[i].value, x.secrets[i].limit
	return nil
}

// spend counts the use of a credential by a request that is passed on, and refuses a request beyond the credential's limit.
func (p *requests) spend(x *roundTrip) error {
	if x.used == nil {
		return nil
	}
	if !p.engine.credentials.Count(x.used.Name, x.limit, time.Now()) {
		p.engine.awaitState(p.engine.credentials.Answered(x.used.Name, http.StatusTooManyRequests), p.engine.urgent)
		return &deniedError{reason: fmt.Sprintf("the limit of %d requests a day with the credential %s is used up", x.limit, x.used.Name),
			final: true, status: http.StatusTooManyRequests}
	}
	x.waits = true
	if p.engine.changed(); x.limit > 0 {
		p.engine.awaitState(true, p.engine.counted)
	}
	return nil
}

// putCredential writes the credential of a request into it, and removes all others.
func (x *roundTrip) putCredential(r *http.Request) {
	if !x.guarded {
		return
	}
	r.Trailer = nil // some servers read it as headers
	if x.used == nil {
		credential.Credential{}.Strip(r.Header)
	} else {
		x.used.Apply(r.Header, x.value)
	}
	if len(x.secrets) > 0 {
		request.Remove(r.Header, request.Forms)
		r.Header.Set("Accept-Encoding", "identity") // so that a value is found in the answer
	}
}

// ruleFor returns the rule about this request only, quoted. It is empty if the rules are not about requests or cannot describe this one.
func ruleFor(x *roundTrip, name, path string) string {
	text, ok := NarrowestRule(x.method, name, path)
	if !x.perRequest || !ok {
		return ""
	}
	return "'" + text + "'"
}

// checkForm returns an error for a request that is not for the server of the connection.
func (p *requests) checkForm(r *http.Request) error {
	host, err := Canonical(strings.TrimSuffix(r.Host, p.port))
	second := r.Header.Get("Host") // in HTTP/2, r.Host is the pseudo-header :authority
	switch {
	case r.Method == http.MethodConnect, !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*":
		return errors.New("the request is one for a proxy")
	case r.TLS == nil && r.ProtoMajor != 1:
		return errors.New("only HTTP/1 is passed on without TLS")
	case upgrades(r, "h2"), upgrades(r, "http/"):
		return errors.New("no upgrade to another version of HTTP is passed on")
	case err != nil:
		return err
	case host != p.flow.name, second != "" && second != r.Host:
		return errors.New("the request is for another host than the connection, " + p.flow.name)
	}
	return nil
}

func upgrades(r *http.Request, to string) bool {
	return slices.ContainsFunc(r.Header.Values("Upgrade"), func(value string) bool { return strings.Contains(strings.ToLower(value), to) })
}

// dial returns the connection that was made first, and makes another one, with its own look-up, for each later call.
func (p *requests) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	c := p.first
	p.first = nil
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := p.engine.dial(ctx, p.flow)
	if err != nil {
		return nil, &failure.Dial{Err: err}
	}
	return c, nil
}
