package egress

import (
	"errors"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

const (
	// maxPending is how many records may wait to be written; connections of which a record is to be written count as well.
	maxPending = 1024
	// maxBatch is how many records are handed over at a time.
	maxBatch = 256
	// sameRefusal is how long refusals of the same kind count as one, maxRefusals how many kinds are told apart meanwhile.
	sameRefusal = time.Second
	maxRefusals = 64
)

// errUnrecorded refuses a connection.
var errUnrecorded = errors.New("connections cannot be recorded at the moment")

// journal holds the records that are not yet in the ledger, which is outside. Its memory is bounded.
type journal struct {
	now  func() time.Time
	wake chan struct{} // has room for one

	mu       sync.Mutex
	closed   bool // the ledger cannot be written, or has not been heard of
	pending  []control.Record
	reserved int // connections whose last record is not yet pending
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

func newJournal(now func() time.Time) *journal {
	return &journal{now: now, wake: make(chan struct{}, 1), closed: true, refusals: map[refusal]*control.Record{}}
}

// admit makes room for the record of a connection. The caller must [journal.end] it.
func (j *journal) admit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || len(j.pending)+j.reserved >= maxPending {
		return errUnrecorded
	}
	j.reserved++
	return nil
}

// end writes the last record of a connection.
func (j *journal) end(r control.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reserved--
	j.pending = append(j.pending, r)
	j.signal()
}

// release gives back room that was made for a connection that was refused after all.
func (j *journal) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reserved--
}

// add writes a record for which no room was made. It is lost if there is none.
func (j *journal) add(r control.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending)+j.reserved < maxPending {
		j.pending = append(j.pending, r)
	}
	j.signal()
}

func (j *journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// refuse writes a refusal. The same one again within a second is only counted.
func (j *journal) refuse(r control.Record) {
	key := refusal{r.Proto, r.Name, r.Address, r.Reason, r.Method, r.Port}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.now().Sub(j.since) >= sameRefusal {
		j.flush()
	}
	known := j.refusals[key]
	if known == nil && len(j.refusals) >= maxRefusals {
		key = refusal{}
		r = control.Record{Time: r.Time, Kind: r.Kind, Via: r.Via, Verdict: r.Verdict, Reason: "too many different refusals to tell apart"}
		known = j.refusals[key]
	}
	if known != nil {
		known.Count++
		known.Time = r.Time
		return
	}
	again := r
	j.refusals[key] = &again
	if key == (refusal{}) {
		again.Count = 1
		return
	}
	again.Count = 0
	if len(j.pending)+j.reserved < maxPending {
		j.pending = append(j.pending, r)
	} else {
		again.Count = 1
	}
	j.signal()
}

// flush writes the refusals that were counted. The caller has the lock.
func (j *journal) flush() {
	kept := map[refusal]*control.Record{}
	for key, r := range j.refusals {
		if r.Count == 0 {
			continue
		}
		if len(j.pending)+j.reserved >= maxPending {
			kept[key] = r // counted on until there is room
			continue
		}
		j.pending = append(j.pending, *r)
		j.signal()
	}
	j.refusals, j.since = kept, j.now()
}

// unwritten returns records to be handed over, and whether the ledger is known to be writable. They stay until they are
// [journal.written].
func (j *journal) unwritten() (records []control.Record, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.now().Sub(j.since) >= sameRefusal {
		j.flush()
	}
	return append([]control.Record(nil), j.pending[:min(len(j.pending), maxBatch)]...), j.closed
}

// counted reports whether refusals wait to be flushed.
func (j *journal) counted() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.refusals) > 0
}

// written removes the first n records, which are in the ledger now. more reports whether it can take further ones.
func (j *journal) written(n int, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = j.pending[min(n, len(j.pending)):]
	if len(j.pending) == 0 {
		j.pending = nil
	}
	j.closed = !more
}
