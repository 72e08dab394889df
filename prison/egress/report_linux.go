package egress

import (
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

const (
	// stateEvery is how often the state is reported at most.
	stateEvery = 500 * time.Millisecond
	// retryEvery is how often the holder is asked again whether it can write.
	retryEvery = 500 * time.Millisecond
)

// A holder is the process that steers this network, over a socket.
type holder interface {
	Send(v any, files ...*os.File) error
	Recv(v any) (files []*os.File, err error)
}

// report obeys the orders of the holder, and hands over records and the state, until the connection to the holder ends.
func (e *Engine) report(h holder) {
	written := make(chan control.Written, 1)
	gone := make(chan struct{})
	var sending sync.Mutex
	send := func(r control.Report) {
		sending.Lock()
		defer sending.Unlock()
		h.Send(r) //nolint:errcheck // the reader sees that the holder has gone
	}
	go e.reportState(send, gone)
	go e.reportRecords(send, written, gone)
	go func() {
		for {
			select {
			case name := <-e.stale:
				send(control.Report{Stale: name})
			case <-gone:
				return
			}
		}
	}()
	defer close(gone)
	for {
		var o control.Order
		if _, err := h.Recv(&o); err != nil {
			return
		}
		e.obey(o)
		if o.Written != nil {
			select {
			case written <- *o.Written:
			default: // nobody has asked
			}
		}
	}
}

// reportState hands over each new state, but not too often.
func (e *Engine) reportState(send func(control.Report), gone <-chan struct{}) {
	var last control.State
	for {
		select {
		case <-e.dirty:
		case <-gone:
			return
		}
		if s := e.state(); !reflect.DeepEqual(s, last) {
			r := control.Report{State: &s}
			if s.Authorities != last.Authorities {
				if all, err := e.trusted.Save(); err == nil {
					r.Authorities = &control.Authorities{All: all}
				}
			}
			last = s
			send(r)
		}
		if !await(stateEvery, nil, gone) {
			return
		}
	}
}

// reportRecords hands over records, and waits each time until the holder has written them.
func (e *Engine) reportRecords(send func(control.Report), written <-chan control.Written, gone <-chan struct{}) {
	for {
		records, closed := e.journal.unwritten()
		pause, wake := time.Duration(0), e.journal.wake
		switch {
		case len(records) > 0 || closed:
			send(control.Report{Write: true, Records: records})
			select {
			case w := <-written:
				if closed = w.Error != ""; !closed {
					continue
				}
			case <-gone:
				return
			}
			pause, wake = retryEvery, nil // records wait, too
		case e.journal.counted():
			pause = sameRefusal
		}
		if !await(pause, wake, gone) {
			return
		}
	}
}

// await waits for a time, if it is not zero, or until there is something to do. It reports false at the end.
func await(pause time.Duration, wake <-chan struct{}, gone <-chan struct{}) bool {
	var late <-chan time.Time
	if pause > 0 {
		late = time.After(pause)
	}
	select {
	case <-late:
	case <-wake:
	case <-gone:
		return false
	}
	return true
}
