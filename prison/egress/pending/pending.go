// Package pending holds the records of a network until the process that has the ledger has written them.
package pending

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

const (
	// maxPending is how many records may wait to be written. A connection whose last record is not written yet counts as one.
	maxPending = 1024
	// admitPatience is how long a connection or request waits while that many do.
	admitPatience = 10 * time.Second
	// maxBatch is how many records are handed over at a time.
	maxBatch = 256
	// SameRefusal is how long refusals of the same kind count as one, maxRefusals how many kinds are told apart meanwhile.
	SameRefusal = time.Second
	maxRefusals = 64
)

// ErrUnrecorded refuses a connection.
var ErrUnrecorded = errors.New("connections cannot be recorded at the moment")

// Queue holds records. Its memory is bounded. It may be used by several goroutines.
type Queue struct {
	now  func() time.Time
	wake chan struct{} // has room for one

	mu       sync.Mutex
	closed   bool // the ledger cannot be written, or has not been heard of
	pending  []control.Record
	reserved int // connections whose last record is not yet pending
	// freed is closed when there may be room again, or the ledger cannot be written any more.
	freed chan struct{}
	// refusals are those that were refused again after their first record, with counts. The empty key counts all that
	// could not be told apart.
	refusals map[refusal]*control.Record
	since    time.Time
}

// refusal has the common fields of refusals that count as one.
type refusal struct {
	proto, name, address, reason, method string
	port                                 uint16
}

// New returns a queue that admits nothing until the ledger has been heard of.
func New(now func() time.Time) *Queue {
	return &Queue{now: now, wake: make(chan struct{}, 1), closed: true, freed: make(chan struct{}), refusals: map[refusal]*control.Record{}}
}

// Admit makes room for the record of a connection, and waits while there is none: on a busy machine the ledger is written late. The
// caller must [Queue.End] it.
func (q *Queue) Admit(ctx context.Context) error {
	var late <-chan time.Time
	for {
		freed, err := q.tryAdmit()
		if freed == nil {
			return err
		}
		if late == nil {
			late = time.After(admitPatience)
		}
		select {
		case <-freed:
		case <-late:
			return ErrUnrecorded
		case <-ctx.Done():
			return ErrUnrecorded
		}
	}
}

// tryAdmit makes room, or returns what is closed when there may be some.
func (q *Queue) tryAdmit() (freed <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrUnrecorded
	case len(q.pending)+q.reserved >= maxPending:
		return q.freed, nil
	}
	q.reserved++
	return nil, nil
}

// End writes the last record of a connection.
func (q *Queue) End(r control.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.pending = append(q.pending, r)
	q.signal()
}

// Release gives back room that was made for a connection that was refused after all.
func (q *Queue) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.free()
}

// free lets those try again who wait for room. The caller has the lock.
func (q *Queue) free() {
	close(q.freed)
	q.freed = make(chan struct{})
}

// Add writes a record for which no room was made. It is lost if there is none.
func (q *Queue) Add(r control.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending)+q.reserved < maxPending {
		q.pending = append(q.pending, r)
	}
	q.signal()
}

// Wake returns a channel that gets a value when there is something to hand over.
func (q *Queue) Wake() <-chan struct{} { return q.wake }

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Refuse writes a refusal. The same one again within a second is only counted.
func (q *Queue) Refuse(r control.Record) {
	key := refusal{r.Proto, r.Name, r.Address, r.Reason, r.Method, r.Port}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.now().Sub(q.since) >= SameRefusal {
		q.flush()
	}
	known := q.refusals[key]
	if known == nil && len(q.refusals) >= maxRefusals {
		key = refusal{}
		r = control.Record{Time: r.Time, Kind: r.Kind, Via: r.Via, Verdict: r.Verdict, Reason: "too many different refusals to tell apart"}
		known = q.refusals[key]
	}
	if known != nil {
		known.Count++
		known.Time = r.Time
		return
	}
	again := r
	q.refusals[key] = &again
	if key == (refusal{}) {
		again.Count = 1
		return
	}
	again.Count = 0
	if len(q.pending)+q.reserved < maxPending {
		q.pending = append(q.pending, r)
	} else {
		again.Count = 1
	}
	q.signal()
}

// flush writes the refusals that were counted. The caller has the lock.
func (q *Queue) flush() {
	kept := map[refusal]*control.Record{}
	for key, r := range q.refusals {
		if r.Count == 0 {
			continue
		}
		if len(q.pending)+q.reserved >= maxPending {
			kept[key] = r // counted on until there is room
			continue
		}
		q.pending = append(q.pending, *r)
		q.signal()
	}
	q.refusals, q.since = kept, q.now()
}

// Unwritten returns records to be handed over, and whether the ledger is known to be writable. They stay until they are
// [Queue.Written].
func (q *Queue) Unwritten() (records []control.Record, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.now().Sub(q.since) >= SameRefusal {
		q.flush()
	}
	return append([]control.Record(nil), q.pending[:min(len(q.pending), maxBatch)]...), q.closed
}

// Counted reports whether refusals wait to be flushed.
func (q *Queue) Counted() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.refusals) > 0
}

// Written removes the first n records, which are in the ledger now. more reports whether it can take further ones.
func (q *Queue) Written(n int, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = q.pending[min(n, len(q.pending)):]
	if len(q.pending) == 0 {
		q.pending = nil
	}
	q.closed = !more
	q.free()
}
