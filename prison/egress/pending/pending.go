// Package pending holds the records of a network until its holder has written them to the ledger. Begin with [Queue].
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
	// admitPatience is how long a connection or request waits for room.
	admitPatience = 10 * time.Second
	// maxBatch is how many records are handed over at a time.
	maxBatch = 256
	// SameRefusal is how long refusals of the same kind count as one, and maxRefusals how many kinds are told apart meanwhile. At most
	// maxPaths of them have a path, so that an agent that tries many paths hides no other host. Refusals by a rule that denies are counted
	// apart with the same bounds, so that no others hide them.
	SameRefusal = time.Second
	maxRefusals = 64
	maxPaths    = maxRefusals / 2
	// maxRare is how many rare records may wait beyond maxPending.
	maxRare = 64
)

// ErrUnrecorded is the error for a connection that cannot be recorded.
var ErrUnrecorded = errors.New("connections cannot be recorded at the moment")

// Queue holds records. Its memory is bounded. It may be used by several goroutines.
type Queue struct {
	now  func() time.Time
	wake chan struct{} // buffers one value

	mu         sync.Mutex
	unwritable bool // the ledger cannot be written, or Written was not called yet
	closed     bool
	pending    []control.Record
	reserved   int // connections whose last record is not yet pending
	// rare is how many of the pending records are rare. Beyond maxRare, more has one record for all of a kind.
	rare int
	more map[kind]control.Record
	// freed is closed when there may be room again, or the ledger cannot be written any more.
	freed chan struct{}
	// refusals has the kinds of refusals since the last flush. Count is how often a kind came again after its record. Keys with others count
	// all kinds beyond maxRefusals.
	refusals map[refusal]*control.Record
	since    time.Time // the last flush
}

// kind has the common fields of rare records of which one can count the others.
type kind struct{ kind, credential string }

// isRare reports whether the agent does not cause records like this one in numbers. They have room of their own, so that a queue full of
// requests does not hide them.
func isRare(r control.Record) bool {
	return r.Kind == control.KindAlarm || r.Kind == control.KindPolicy
}

// refusal has the common fields of refusals that count as one.
type refusal struct {
	proto, name, address, reason, method, path string
	port                                       uint16
	others                                     bool   // all kinds that are not told apart
	rule                                       string // of others, if it denies
}

// New returns a queue that admits nothing until [Queue.Written] reports that the ledger can be written.
func New(now func() time.Time) *Queue {
	return &Queue{now: now, wake: make(chan struct{}, 1), unwritable: true, freed: make(chan struct{}), refusals: map[refusal]*control.Record{}, more: map[kind]control.Record{}}
}

// Admit reserves room for the record of a connection, and waits while there is none: on a busy machine the ledger is written late. The
// caller must then call [Queue.End] or [Queue.Release].
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

// tryAdmit reserves room, or returns a channel that is closed when there may be some.
func (q *Queue) tryAdmit() (freed <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.unwritable, q.closed:
		return nil, ErrUnrecorded
	case q.full():
		return q.freed, nil
	}
	q.reserved++
	return nil, nil
}

// End adds the last record of a connection, for which Admit has reserved room.
func (q *Queue) End(r control.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.pending = append(q.pending, r)
	q.signal()
}

// Release gives back the room for a connection that was refused after all.
func (q *Queue) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.free()
}

// free wakes the callers of Admit that wait for room. The caller has the lock.
func (q *Queue) free() {
	close(q.freed)
	q.freed = make(chan struct{})
}

// full reports whether the queue has no room for another ordinary record. The caller has the lock.
func (q *Queue) full() bool { return len(q.pending)-q.rare+q.reserved >= maxPending }

// fullFor is full for a refusal. Those by a rule that denies have more room, so that an agent does not delay them by many connections. The
// caller has the lock.
func (q *Queue) fullFor(r control.Record) bool {
	return q.full() && (!r.Denied() || len(q.pending)-q.rare+q.reserved >= maxPending+maxRefusals)
}

// Add adds a record without reserved room. The record is lost if the queue is full, unless it is an alarm or about rules. Of many of these, one
// record counts the others.
func (q *Queue) Add(r control.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if isRare(r) {
		q.addRare(r)
	} else if !q.full() {
		q.pending = append(q.pending, r)
	}
	q.signal()
}

// addRare is Add for a rare record. The caller has the lock.
func (q *Queue) addRare(r control.Record) {
	key := kind{r.Kind, r.Credential}
	if earlier, ok := q.more[key]; ok {
		r.Count = max(1, earlier.Count) + 1
	}
	q.more[key] = r
	q.admitRare()
}

// admitRare makes the records in more pending, as far as there is room. The caller has the lock.
func (q *Queue) admitRare() {
	for key, r := range q.more {
		if q.rare < maxRare {
			q.pending, q.rare = append(q.pending, r), q.rare+1
			delete(q.more, key)
		}
	}
}

// Wake returns a channel that gets a value when there are records to hand over.
func (q *Queue) Wake() <-chan struct{} { return q.wake }

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Refuse adds a refusal. If the same refusal comes again within [SameRefusal], Refuse only counts it.
func (q *Queue) Refuse(r control.Record) {
	key := refusal{proto: r.Proto, name: r.Name, address: r.Address, reason: r.Reason, method: r.Method, path: r.Path, port: r.Port}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.now().Sub(q.since) >= SameRefusal {
		q.flush()
	}
	known := q.refusals[key]
	kinds, paths := q.kinds(r.Denied())
	if known == nil && r.Path != "" && paths >= maxPaths {
		key.path, r.Path = control.OtherPaths, control.OtherPaths
		known = q.refusals[key]
	}
	if known == nil && kinds >= maxRefusals {
		key, r = others(r)
		known = q.refusals[key]
	}
	if known != nil {
		known.Count++
		known.Time = r.Time
		return
	}
	again := r
	q.refusals[key] = &again
	if key.others {
		again.Count = 1
		return
	}
	if !q.fullFor(r) {
		q.pending = append(q.pending, r)
	} else {
		again.Count = 1
	}
	q.signal()
}

// others returns the record for all refusals that are not told apart from one, and its key. If a rule denies them, they keep the rule.
func others(r control.Record) (refusal, control.Record) {
	with := control.Record{Time: r.Time, Kind: r.Kind, Via: r.Via, Verdict: r.Verdict, Reason: "too many different refusals to tell apart"}
	if r.Denied() {
		with.Rule, with.Reason = r.Rule, r.Reason
	}
	return refusal{others: true, reason: with.Reason, rule: with.Rule}, with
}

// kinds returns how many kinds of refusals are told apart, by a rule that denies or not, and how many of them have a path of their own. The
// caller has the lock.
func (q *Queue) kinds(denied bool) (all, paths int) {
	for key, r := range q.refusals {
		if key.others || r.Denied() != denied {
			continue
		}
		all++
		if key.path != "" && key.path != control.OtherPaths {
			paths++
		}
	}
	return all, paths
}

// flush adds records of the refusals that were counted. The caller has the lock.
func (q *Queue) flush() {
	kept := map[refusal]*control.Record{}
	for key, r := range q.refusals {
		if r.Count == 0 {
			continue
		}
		if q.fullFor(*r) {
			kept[key] = r // its count goes on until there is room
			continue
		}
		q.pending = append(q.pending, *r)
		q.signal()
	}
	q.refusals, q.since = kept, q.now()
}

// Unwritten returns records to hand over, and whether the ledger may not be writable. The records stay in the queue until [Queue.Written]
// removes them.
func (q *Queue) Unwritten() (records []control.Record, unwritable bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.now().Sub(q.since) >= SameRefusal {
		q.flush()
	}
	return append([]control.Record(nil), q.pending[:min(len(q.pending), maxBatch)]...), q.unwritable
}

// Close makes the queue admit nothing any more. Earlier refusals are handed over without delay, and later ones are caused by the end.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.free()
	q.signal()
}

// Drained reports whether the queue is closed, and all its records are written, also those of the connections that were admitted.
func (q *Queue) Drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.pending) == 0 && q.reserved == 0
}

// Ended returns the connections whose last records are not in the ledger yet.
func (q *Queue) Ended() (flows []control.Flow) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.pending {
		if f, ok := r.Flow(); ok {
			flows = append(flows, f)
		}
	}
	return flows
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
	n = min(n, len(q.pending))
	for _, r := range q.pending[:n] {
		if isRare(r) {
			q.rare--
		}
	}
	q.pending = q.pending[n:]
	if len(q.pending) == 0 {
		q.pending = nil
	}
	q.admitRare()
	q.unwritable = !more
	q.free()
}
