// Package lookup asks the resolvers of this machine, see resolv.conf(5).
package lookup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// patience is how long a look-up may take.
	patience = 10 * time.Second
	// trial is how long each resolver gets in a short look-up, and retrial the same for a name that none has answered about lately.
	trial, retrial = time.Second, 200 * time.Millisecond
	// maxResolvers is how many resolvers are asked, see resolv.conf(5).
	maxResolvers = 3
	// silence is how long a name without an answer is remembered, and maxSilent how many such names.
	silence, maxSilent = 30 * time.Second, 1000
)

// ErrNoName reports that a name does not exist.
var ErrNoName = errors.New("no such name")

// Resolver looks names up. The zero value is ready for use.
type Resolver struct {
	mu     sync.Mutex
	silent map[string]time.Time // when a short look-up of the name had no answer
	ask    func(ctx context.Context, name string, each time.Duration) ([]netip.Addr, error)
}

// LookUp returns the addresses of an absolute name. It appends no search domain.
func (r *Resolver) LookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.asker()(ctx, name, 0)
}

// LookUpShortly is [Resolver.LookUp] for callers that can go on without an answer. Each resolver of this machine is asked, but may take a
// second only. Behind resolvers that are silent, further look-ups of the same name are shorter for a while. No look-up is left out: a
// resolver that answers again is heard.
func (r *Resolver) LookUpShortly(ctx context.Context, name string) ([]netip.Addr, error) {
	each, began := trial, time.Now()
	r.mu.Lock()
	since, known := r.silent[name]
	r.mu.Unlock()
	if known = known && began.Sub(since) < silence; known {
		each = retrial
	}
	limited, cancel := context.WithTimeout(ctx, maxResolvers*each)
	defer cancel()
	found, err := r.asker()(limited, name, each)
	dns, failed := errors.AsType[*net.DNSError](err)
	unanswered := failed && dns.IsTimeout && ctx.Err() == nil
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !unanswered:
		delete(r.silent, name)
	case !known:
		if r.silent == nil || len(r.silent) >= maxSilent {
			r.silent = map[string]time.Time{}
		}
		r.silent[name] = began
	}
	return found, err
}

func (r *Resolver) asker() func(context.Context, string, time.Duration) ([]netip.Addr, error) {
	if r.ask != nil {
		return r.ask
	}
	return ask
}

// ask returns the addresses of a name. Unless each is zero, it limits the time for the answer to each question.
func ask(ctx context.Context, name string, each time.Duration) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true} // the resolver of libc loads libraries, which a confined process cannot
	if each > 0 {
		r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{Timeout: each}).DialContext(ctx, network, address)
			if u, ok := c.(*net.UDPConn); ok {
				return &impatient{u, each}, err
			}
			return c, err
		}
	}
	found, err := r.LookupNetIP(ctx, "ip", name+".")
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return nil, ErrNoName
	}
	return found, err
}

// impatient is a connection to a resolver with an earlier deadline than the one that [net.Resolver] sets, which is that of resolv.conf(5).
type impatient struct {
	*net.UDPConn
	each time.Duration
}

// SetDeadline implements [net.Conn].
func (c *impatient) SetDeadline(t time.Time) error {
	if end := time.Now().Add(c.each); t.After(end) {
		t = end
	}
	return c.UDPConn.SetDeadline(t)
}
