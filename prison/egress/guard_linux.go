package egress

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/failure"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

var (
	errTooMany   = errors.New("too many connections at a time")
	errDatagrams = errors.New("only TCP leaves")
	errGone      = errors.New("the client closed the connection before the server's answer")
)

// notOpen is what the agent is told about a closed address of a name. The agent must not learn the address.
const notOpen = "its address is not open"

// A deniedError is a refusal by the policy or of an address.
type deniedError struct {
	reason string
	told   string     // what the agent is told instead of the reason, if not empty
	allow  string     // the rule that would allow it, quoted; empty: the rule for all requests to the host
	at     netip.Addr // the closed address of a name; invalid if the refusal is about none
	final  bool       // no rule would allow it
	status int        // of the answer to a request that no rule would allow; 0 means 403
}

func (e *deniedError) Error() string { return e.reason }

// refusal returns the error of a decision that refuses.
func (d Decision) refusal() *deniedError {
	refused := &deniedError{reason: d.Reason, final: d.Final}
	if d.closed {
		refused.told = notOpen
	}
	return refused
}

// reasonOf returns the reason of a refusal for the ledger. The reason says so if no rule can lift the refusal, such as one at a limit.
func reasonOf(refusal error) string {
	if denied, ok := errors.AsType[*deniedError](refusal); ok && !denied.final {
		return clip(denied.reason)
	}
	return clip(control.ReasonFinal + refusal.Error())
}

func (e *Engine) current() *Policy { return e.policy.Load() }

// reach decides about a flow, makes room for its record and connects it to the world. After success, the caller must write its last record
// with [pending.Queue.End].
func (e *Engine) reach(f *flow) (net.Conn, error) {
	if f.to.Addr() == e.wire.Gateway || f.to.Addr() == e.wire.Resolver {
		return nil, &deniedError{reason: "nothing is there", final: true}
	}
	if synthetic.Contains(f.to.Addr()) && f.name == "" {
		return nil, &deniedError{reason: "the address stands for no name", final: true}
	}
	if d := f.decide(e.current); !d.Allowed {
		return nil, d.refusal()
	}
	if err := e.journal.Admit(e.ctx); err != nil {
		return nil, err
	}
	far, err := e.dial(e.ctx, f)
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		e.journal.Release()
		return nil, err
	case err != nil:
		e.journal.End(f.record(control.KindFlow, control.VerdictFailed, clip(err.Error())))
		return nil, err
	}
	e.mu.Lock()
	e.admitted++
	e.mu.Unlock()
	e.changed()
	return far, nil
}

// dial connects a flow to the world, and decides about it before and after.
func (e *Engine) dial(ctx context.Context, f *flow) (net.Conn, error) {
	if d := f.decide(e.current); !d.Allowed {
		return nil, d.refusal()
	}
	far, err := e.world.Connect(ctx, Target{Network: f.network, Name: f.name, To: f.to, Rules: e.current(), Keep: f.at(), Way: e.way()})
	e.changed() // perhaps the state of the proxy
	if closed, ok := errors.AsType[*ClosedError](err); ok {
		return nil, &deniedError{reason: closed.Error(), told: notOpen, final: closed.Final, at: closed.Address}
	}
	if err != nil {
		return nil, err
	}
	if d := f.connected(far.RemoteAddr(), e.current); !d.Allowed {
		far.Close()
		return nil, d.refusal()
	}
	return far, nil
}

// way returns the proxy that connections go through, or nil.
func (e *Engine) way() *upstream.Way { return e.proxy.Way(e.current().proxy, e.roots) }

// note records why a flow was refused. It ignores other errors, which reach has recorded.
func (e *Engine) note(f *flow, err error) {
	var denied *deniedError
	if !errors.As(err, &denied) && !errors.Is(err, pending.ErrUnrecorded) && !errors.Is(err, errTooMany) && !errors.Is(err, errDatagrams) {
		return
	}
	r := f.record(control.KindRefusal, control.VerdictDeny, reasonOf(err))
	r.Sent, r.Received, r.Millis = 0, 0, 0
	if denied != nil && denied.at.IsValid() {
		r.Address = denied.at.String()
	}
	e.countRefusal(r)
}

func (e *Engine) countRefusal(r control.Record) {
	e.mu.Lock()
	e.refused++
	e.mu.Unlock()
	e.journal.Refuse(r)
	e.changed()
}

// refuse refuses a connection. A client of TLS or HTTP that named its server is told why, others see a reset.
func (e *Engine) refuse(r *tcp.ForwarderRequest, f *flow, refusal error) {
	e.note(f, refusal)
	var tell func(net.Conn)
	switch web := e.open && f.name != ""; { // an open network passes on what it cannot read, and answers only what it refuses
	case f.proto == control.ProtoTLS, web && f.to.Port() == 443:
		tell = tellTLS
	case f.proto == control.ProtoHTTP, web && f.to.Port() == 80:
		tell = func(c net.Conn) { tellHTTP(c, f, refusal) }
	}
	if _, denied := errors.AsType[*deniedError](refusal); tell == nil || !denied && !errors.Is(refusal, pending.ErrUnrecorded) {
		r.Complete(true)
		return
	}
	n, near, err := e.accept(r, f)
	if err != nil {
		return
	}
	f.stopWith(n.Abort)
	tell(near)
	near.Close()
}

// carry accepts a connection whose other half exists, and copies bytes until it ends. It reports whether the connection was refused after
// all. Its stack exists as long as the connection, so work that needs a large stack is in other functions.
func (e *Engine) carry(r *tcp.ForwarderRequest, f *flow, far net.Conn) (refused bool) {
	defer far.Close()
	n, near, err := e.accept(r, f)
	if err != nil {
		return false
	}
	defer near.Close()
	long := time.AfterFunc(control.LongFlow, func() { e.journal.Add(f.record(control.KindFlow, control.VerdictBegun, "")) })
	defer long.Stop()
	perRequest := f.carryAs()
	switch f.proto {
	case control.ProtoTLS:
		f.stopWith(func() {
			n.Abort()
			far.Close()
		})
		first, err := e.hear(f, near, hello.Read)
		if err != nil {
			return !hello.Unfinished(err)
		}
		if perRequest {
			e.serveTLS(f, n, &countedConn{TCPConn: near, flow: f, before: first}, far)
			return false
		}
		if err := e.greet(f, near, far, first); err != nil {
			f.fail(clip(err.Error()))
			return false
		}
	case control.ProtoHTTP:
		e.serveHTTP(f, n, &countedConn{TCPConn: near, flow: f}, far, nil)
		return false
	}
	e.copyBoth(f, n, near, far)
	return false
}

// hear reads a client hello of a TLS connection, and refuses one for another name. A client that sends no whole hello is not refused: the
// connection fails.
func (e *Engine) hear(f *flow, near net.Conn, read func(net.Conn) (hello.Hello, error)) ([]byte, error) {
	h, err := read(near)
	if err == nil {
		err = checkHello(h, f.name, f.mayHide())
	}
	if hello.Unfinished(err) {
		f.fail(err.Error())
	} else if err != nil {
		e.note(f, &deniedError{reason: err.Error(), final: !errors.Is(err, errEncrypted)})
		sayDenied(near)
	}
	return h.Bytes, err
}

// greet passes the first client hello on, and the answer of the server. If the server asks for a second hello, that one must name the same
// server, since some servers go by it. No other byte of the client leaves before: a client could send the second hello along with the first.
// The error has the words of a record.
func (e *Engine) greet(f *flow, near, far net.Conn, first []byte) error {
	if _, err := far.Write(first); err != nil {
		return errors.New(failure.Reason(err, false))
	}
	f.sent.Add(int64(len(first)))
	answer, again, err := hello.Answer(far)
	f.received.Add(int64(len(answer)))
	_, failed := near.Write(answer)
	switch {
	case err != nil:
		return errors.New(failure.Reason(err, false))
	case failed != nil:
		return errGone
	case !again:
		return nil
	}
	second, err := e.hear(f, near, hello.ReadSecond)
	if err != nil {
		return err
	}
	f.sent.Add(int64(len(second)))
	if _, err = far.Write(second); err != nil {
		return errors.New(failure.Reason(err, false))
	}
	return nil
}

// finish writes the last record of a connection, or gives back the record's room if the connection was refused. The state has the connection
// all the time: see [Engine.state].
func (e *Engine) finish(f *flow, refused bool) {
	if refused {
		e.journal.Release()
	} else {
		e.journal.End(f.last())
	}
	e.remove(f)
}

// obey follows an order of the holder.
func (e *Engine) obey(o control.Order) {
	if o.Rules != nil {
		e.use(*o.Rules)
	}
	for _, u := range o.Uses {
		e.credentials.Continue(u.Name, u.Requests, u.Today, u.Last)
	}
	if o.Values != nil {
		e.proxy.Take(o.Values)
		e.credentials.Set(o.Values)
		e.changed()
	}
	if o.Written != nil {
		e.journal.Written(o.Written.Records, o.Written.Error == "")
		e.changed() // the state does not have the connections of these records any more
	}
	if o.End {
		e.Close()
		e.journal.Close()
	}
	if o.Asked > 0 {
		e.asked.Store(o.Asked)
		e.changed()
		wakeUp(e.counted)
	}
}

// clockCheck is how often rules that end are compared with the time of day, which changes also while the machine sleeps.
const clockCheck = 10 * time.Second

// use puts rules into force, and ends the flows that they do not allow.
func (e *Engine) use(rules control.Rules) {
	defer e.changed()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	p, err := NewPolicy(e.lifetimes.InForce(rules, now, now.Round(0)), now)
	if err == nil && rules.Generation < e.policy.Load().Generation {
		err = errors.New("older than the rules in force")
	}
	p.Open = e.open
	if err == nil {
		err = e.trusted.Update(p.requestNames(), time.Now())
	}
	if err != nil {
		e.failed = err.Error()
		return
	}
	if p.Generation != e.policy.Load().Generation {
		e.journal.Add(p.record())
		e.closed = 0
	}
	e.failed, e.rules = "", rules
	e.policy.Store(&p)
	for f := range e.flows {
		if f.enforce(&p) {
			e.closed++
		}
	}
	if e.expiry != nil {
		e.expiry.Stop()
	}
	if next := p.Changes(); !next.IsZero() {
		e.expiry = time.AfterFunc(min(max(0, time.Until(next)), clockCheck), func() { e.use(e.lastRules()) })
	}
}

func (e *Engine) lastRules() control.Rules {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules
}

// changed makes reportState send the state again.
func (e *Engine) changed() {
	wakeUp(e.dirty)
}

// wakeUp sends a value over a channel that buffers one.
func wakeUp(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// state describes the network, as far as this process knows it. It reads the number of the question first, and the connections that have
// ended last, so that none is missing that ends meanwhile.
func (e *Engine) state() control.State {
	asked := e.asked.Load()
	e.mu.Lock()
	s := control.State{
		Asked: asked, Generation: e.policy.Load().Generation, Closed: e.closed, Error: e.failed, Admitted: e.admitted, Refused: e.refused, Authorities: e.trusted.PEM(),
	}
	flows := slices.Collect(maps.Keys(e.flows))
	e.mu.Unlock()
	for _, f := range flows {
		if l, ok := f.live(); ok {
			s.Flows = append(s.Flows, l)
		}
	}
	s.Flows = append(s.Flows, e.journal.Ended()...)
	slices.SortFunc(s.Flows, func(a, b control.Flow) int { return int(a.ID) - int(b.ID) })
	s.Names, s.Proxy = e.known.count()+e.others.count(), e.proxy.Failed(e.current().proxy)
	for _, c := range e.current().credentials {
		u := e.credentials.Used(c.Name)
		_, _, known := e.credentials.Get(c.Name)
		use := control.CredentialUse{Name: c.Name, Known: known, Requests: u.Total, Last: u.Last, Today: u.Today, Status: u.Bad, Silent: u.Silent}
		if u.Waiting > 0 {
			use.Since = u.Since
		}
		s.Credentials = append(s.Credentials, use)
	}
	return s
}
