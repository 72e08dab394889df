package egress

import (
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

const (
	// stateEvery is the minimum time between two reports of the state.
	stateEvery = 500 * time.Millisecond
	// urgentEvery is the minimum time if a refusal waits for a report. Refusals that alternate with other answers wait for it, too.
	urgentEvery = 100 * time.Millisecond
	// countedEvery is the minimum time if a request waits that a limit counts. The limit bounds their number.
	countedEvery = 10 * time.Millisecond
	// endEvery is the pause until an engine that ends looks again for the last records of its connections.
	endEvery = 10 * time.Millisecond
	// retryEvery is the pause until the holder is asked again whether it can write.
	retryEvery = 500 * time.Millisecond
	// gatherFor is how long records are gathered after others were written. The first one after a pause is written at once.
	gatherFor = 5 * time.Millisecond
	// statePatience is how long a refusal or a counted request waits for the holder to write a state that contains it.
	statePatience = 5 * time.Second
)

// A holder is the process that steers this network, over a socket.
type holder interface {
	Send(v any, files ...*os.File) error
	Recv(v any) (files []*os.File, err error)
}

// report obeys the orders of the holder, and hands over records and the state, until the connection to the holder ends.
func (e *Engine) report(h holder) {
	written, stated := make(chan control.Written, 1), make(chan struct{}, 1)
	gone := make(chan struct{})
	var sending sync.Mutex
	send := func(r control.Report) {
		sending.Lock()
		defer sending.Unlock()
		h.Send(r) //nolint:errcheck // the reader sees that the holder has gone
	}
	e.mu.Lock()
	e.attended = true
	e.mu.Unlock()
	go e.reportState(send, stated, gone)
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
			default: // reportRecords does not wait for it
			}
		}
		if o.Stated {
			wakeUp(stated)
		}
	}
}

// awaitState waits until the holder has written a state with a change. A refusal waits before the agent gets it: the agent may end at once,
// and the user's command then finds the reason. A request that a limit counts waits before it leaves: if this process is killed, the next one
// starts with this number. If the holder already has the state, or if there is no holder, awaitState returns at once. A send on urgent makes
// the report come sooner.
func (e *Engine) awaitState(changed bool, urgent chan<- struct{}) {
	done := make(chan struct{})
	e.mu.Lock()
	waits := e.attended && (changed || e.waiting > 0)
	if waits {
		e.waiting++
		e.awaited = append(e.awaited, done)
	}
	e.mu.Unlock()
	if !waits {
		return
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.waiting--
	}()
	e.changed()
	wakeUp(urgent)
	select {
	case <-done:
	case <-time.After(statePatience):
	case <-e.ctx.Done():
	}
}

// takeAwaited returns and forgets the channels of those that wait for the next state.
func (e *Engine) takeAwaited() []chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.awaited
	e.awaited = nil
	return all
}

// reportState hands over each new state, but not too often unless something waits for it.
func (e *Engine) reportState(send func(control.Report), stated, gone <-chan struct{}) {
	var last control.State
	quiet := time.AfterFunc(wire.RestAfter, rest)
	defer quiet.Stop()
	for {
		select {
		case <-e.dirty:
			quiet.Reset(wire.RestAfter)
		case <-gone:
			return
		}
		awaited := e.takeAwaited()
		if s := e.state(); len(awaited) > 0 || !reflect.DeepEqual(s, last) {
			r := control.Report{State: &s, Answer: len(awaited) > 0}
			if s.Authorities != last.Authorities {
				if all, err := e.trusted.Save(); err == nil {
					r.Authorities = &control.Authorities{All: all}
				}
			}
			last = s
			send(r)
		}
		if len(awaited) > 0 && !await(0, stated, gone) {
			return
		}
		for _, done := range awaited {
			close(done)
		}
		if !e.pause(gone) {
			return
		}
	}
}

// pause waits until the next state may be reported. It reports false if gone is closed.
func (e *Engine) pause(gone <-chan struct{}) bool {
	if !await(countedEvery, nil, gone) {
		return false
	}
	urgent, late := (<-chan struct{})(nil), time.After(stateEvery-countedEvery)
	for soon := time.After(urgentEvery - countedEvery); ; {
		select {
		case <-soon:
			urgent = e.urgent
			continue
		case <-e.counted:
		case <-urgent:
		case <-late:
		case <-gone:
			return false
		}
		return true
	}
}

// rest returns memory to the system that silent connections do not need.
func rest() {
	debug.FreeOSMemory()
	wire.Rest()
}

// reportRecords hands over records, and waits each time until the holder has written them. If the engine ends, it also reports the last one.
func (e *Engine) reportRecords(send func(control.Report), written <-chan control.Written, gone <-chan struct{}) {
	for {
		records, unwritable := e.journal.Unwritten()
		pause, wake := time.Duration(0), e.journal.Wake()
		switch {
		case len(records) > 0 || unwritable:
			send(control.Report{Write: true, Records: records})
			select {
			case w := <-written:
				unwritable = w.Error != ""
			case <-gone:
				return
			}
			pause, wake = gatherFor, nil
			if unwritable {
				pause = retryEvery
			}
		case e.journal.Drained():
			send(control.Report{Last: true})
			return
		case e.ctx.Err() != nil:
			pause = endEvery
		case e.journal.Counted():
			pause = pending.SameRefusal
		}
		if !await(pause, wake, gone) {
			return
		}
	}
}

// await waits until pause is over, if it is not zero, or until wake has a value. It reports false if gone is closed.
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
