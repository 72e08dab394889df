package egress

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/share"
)

// flow is a connection that leads from a prison to the world, or an attempt.
type flow struct {
	id       uint64
	begun    time.Time
	network  string         // "tcp" or "udp"
	proto    string         // see [control.Record]
	name     string         // canonical; empty for an address
	to       netip.AddrPort // as seen inside, with the port at which it leaves
	size     *share.Size    // of its buffers
	secured  bool           // the client speaks HTTP without TLS, and the network TLS with the server
	sent     atomic.Int64   // bytes from inside
	received atomic.Int64   // bytes from outside

	mu       sync.Mutex
	decision Decision
	address  netip.Addr // connected to; invalid before
	ended    bool
	closed   string // why a policy ended it
	failed   string // why it failed after it was made
	opaque   bool   // its bytes are copied, and its requests not seen
	// trips are the requests at this moment.
	trips map[*roundTrip]struct{}
	stop  func() // ends both halves at once
}

// abort ends a flow, even before stopWith was called.
func (f *flow) abort() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

// end is abort for a caller that has the lock.
func (f *flow) end() {
	f.ended = true
	if f.stop != nil {
		f.stop()
	}
}

// stopWith sets the function that ends a flow, and calls it at once if the flow has ended already.
func (f *flow) stopWith(stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop = stop; f.ended {
		stop()
	}
}

// decide decides about a flow by the policy in force, and stores the decision.
func (f *flow) decide(current func() *Policy) Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decision = current().Decide(f.name, f.to)
	return f.decision
}

// connected stores the address to which a flow is connected, and decides again, because the rules may have changed meanwhile.
func (f *flow) connected(far net.Addr, current func() *Policy) Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, err := netip.ParseAddrPort(far.String()); err == nil {
		f.address = at.Addr().Unmap()
	}
	f.decision = f.decisionBy(current())
	return f.decision
}

// decisionBy decides about a flow and the address to which it is connected, if any. The caller has the lock.
func (f *flow) decisionBy(p *Policy) Decision { return p.DecideAt(f.name, f.to, f.address) }

// at returns the address to which a flow is connected; invalid before.
func (f *flow) at() netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.address
}

// enforce ends an allowed flow, or requests on it, if a policy does not allow them. It reports whether it ended the flow.
func (f *flow) enforce(p *Policy) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.decision.Allowed || f.ended {
		return false
	}
	switch d := f.decisionBy(p); {
	case !d.Allowed:
		f.decision, f.closed = d, d.Reason
		f.end()
	case d.PerRequest && f.opaque:
		f.closed = "its requests are checked from now on"
		f.end()
	default:
		f.decision.PerRequest = d.PerRequest
		for x := range f.trips {
			if d.PerRequest && (x.tunnel || !x.judge(p, f, f.address).Allowed) {
				x.end()
			}
		}
		return false
	}
	return true
}

// carryAs reports whether the engine decides about each request of a connection. The bytes of any other TLS connection are only copied.
func (f *flow) carryAs() (perRequest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	perRequest = f.decision.PerRequest
	f.opaque = !perRequest && f.proto == control.ProtoTLS
	return perRequest
}

// mayHide reports whether the client hello of a flow may be encrypted: a rule permits it, or the network ends TLS itself. The network has no
// key for an encrypted hello and passes none on, so only the name that was decided about counts then. Many clients send the extension with
// random contents (GREASE, RFC 9849).
func (f *flow) mayHide() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decision.Hidden || !f.opaque
}

// begin adds a request to trips. It reports false if the flow has ended.
func (f *flow) begin(x *roundTrip) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trips == nil {
		f.trips = map[*roundTrip]struct{}{}
	}
	f.trips[x] = struct{}{}
	return !f.ended
}

// finish removes a request that has ended from trips.
func (f *flow) finish(x *roundTrip) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.trips, x)
}

// fail stores why a flow failed after it was connected.
func (f *flow) fail(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = reason
}

// record describes a flow for the ledger.
func (f *flow) record(kind, verdict, reason string) control.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	r := control.Record{
		Kind: kind, Time: now.UTC(), Via: control.ViaTAP, Proto: f.proto, Name: f.name, Port: f.to.Port(), Verdict: verdict,
		Rule: f.decision.label(), Reason: reason, Sent: f.sent.Load(), Received: f.received.Load(), Millis: now.Sub(f.begun).Milliseconds(),
	}
	switch {
	case f.address.IsValid():
		r.Address = f.address.String()
	case f.name == "":
		r.Address = f.to.Addr().String()
	}
	if kind == control.KindFlow {
		r.Seen = control.SeenOpaque
		if f.proto == control.ProtoTLS && f.decision.PerRequest && !f.opaque {
			r.Seen = control.SeenRequest
		}
	}
	return r
}

// last returns the record of the end of an allowed flow.
func (f *flow) last() control.Record {
	f.mu.Lock()
	closed, failed := f.closed, f.failed
	f.mu.Unlock()
	switch {
	case closed != "":
		return f.record(control.KindFlow, control.VerdictClosed, closed)
	case failed != "":
		return f.record(control.KindFlow, control.VerdictFailed, failed)
	}
	return f.record(control.KindFlow, control.VerdictAllow, "")
}

// live describes a flow for the state; ok is false if it was not allowed. A flow that the rules have ended may have brought something.
func (f *flow) live() (l control.Flow, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l = control.Flow{
		ID: f.id, Begun: f.begun.UTC(), Proto: f.proto, Name: f.name, Port: f.to.Port(), Rule: f.decision.Rule.text,
		Source: f.decision.Rule.source, Sent: f.sent.Load(), Got: f.received.Load(),
	}
	if f.address.IsValid() {
		l.Address = f.address.String()
	}
	l.Ended = f.ended
	return l, (f.decision.Allowed || f.ended) && f.address.IsValid()
}
