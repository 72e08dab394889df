package egress

import (
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// writer is a holder that counts states, and answers that it has written everything.
type writer struct {
	states atomic.Int64
	last   atomic.Pointer[control.State]
	orders chan control.Order
	ends   chan struct{}
	whole  chan []control.Record // gets all records with the last report, if it is not nil
	all    []control.Record
}

func (w *writer) Send(v any, _ ...*os.File) error {
	r := v.(control.Report)
	if r.State != nil {
		w.states.Add(1)
		w.last.Store(r.State)
	}
	if r.Answer {
		w.orders <- control.Order{Stated: true}
	}
	if r.Write {
		w.all = append(w.all, r.Records...)
		w.orders <- control.Order{Written: &control.Written{Records: len(r.Records)}}
	}
	if r.Last {
		w.whole <- w.all
	}
	return nil
}

func (w *writer) Recv(v any) ([]*os.File, error) {
	select {
	case o := <-w.orders:
		*v.(*control.Order) = o
		return nil, nil
	case <-w.ends:
		return nil, io.EOF
	}
}

// TestRefusalsBetweenAnswers gets an answer and a refusal in turn. Each refusal is in a state before the agent has it, but there are not more
// than ten states a second.
func TestRefusalsBetweenAnswers(t *testing.T) {
	var asked atomic.Int64
	e, s := newCredentialed(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	holder := &writer{orders: make(chan control.Order, 100), ends: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		e.report(holder)
		close(ended)
	}()
	client, begun := clientOf(t, e, s), time.Now()
	for i := range 20 {
		want := []int{200, 401}[i%2]
		if status, _ := send(t, client, "GET", "https://api.test/v1/x", "Authorization: Bearer "+placeholder); status != want {
			t.Fatalf("request %d: %d", i, status)
		}
	}
	if n, most := holder.states.Load(), 2+int64(time.Since(begun)/urgentEvery); n < 10 || n > most {
		t.Errorf("%d states of 10 refusals, at most %d wanted", n, most)
	}
	close(holder.ends) // a report may be on its way
	<-ended
}

// TestLimitIsKnownBeforeTheRequest reads the holder's state when the server gets a request: a successor of a process that is killed at that
// moment goes on counting there.
func TestLimitIsKnownBeforeTheRequest(t *testing.T) {
	holder := &writer{orders: make(chan control.Order, 100), ends: make(chan struct{})}
	var got atomic.Int64
	e, s := newCredentialed(t, func(http.ResponseWriter, *http.Request) {
		want := int(got.Add(1))
		for _, u := range holder.last.Load().Credentials {
			if u.Name == "limited" && u.Today != want {
				t.Errorf("request %d: the holder knows %d", want, u.Today)
			}
		}
	})
	ended := make(chan struct{})
	go func() {
		e.report(holder)
		close(ended)
	}()
	for ; holder.last.Load() == nil; time.Sleep(time.Millisecond) {
		e.changed()
	}
	client := clientOf(t, e, s)
	for range 3 {
		send(t, client, "GET", "https://limited.test/", "Authorization: Bearer sk-limited-0000000000000000")
	}
	if got.Load() != 2 {
		t.Errorf("%d requests, of which the limit allows 2", got.Load())
	}
	close(holder.ends)
	<-ended
}

// TestStateHasUnwritten closes a connection while many records wait to be written. Every state has the connection until its record is
// written, and an answer to a question has it, too.
func TestStateHasUnwritten(t *testing.T) {
	e, s := join(t, Settings{World: &fakeWorld{serve: echo}, First: writable(control.Rules{Generation: 1, Learn: true})})
	const others = 1000
	for range others {
		e.journal.Add(control.Record{Kind: control.KindRequest, Name: "api.test"})
	}
	c := mustDial(t, s, "evil.test", 22)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	want := func(ended bool) (found bool) {
		t.Helper()
		for _, f := range e.state().Flows {
			found = found || f.Name == "evil.test" && f.Got == 1 && f.Rule == "" && f.Ended == ended
		}
		return found
	}
	for begun := time.Now(); !want(true); time.Sleep(time.Millisecond) {
		if !want(false) && !want(true) {
			t.Fatal("the connection is neither in the state nor in the ledger")
		}
		if time.Since(begun) > patience {
			t.Fatal("the connection does not end")
		}
	}
	e.obey(control.Order{Asked: 7})
	e.obey(control.Order{Written: &control.Written{Records: others}}) // but one, since the rules have a record
	if s := e.state(); !want(true) || s.Asked != 7 {
		t.Errorf("before the record is written: %+v", s)
	}
	for records, _ := e.journal.Unwritten(); len(records) > 0; records, _ = e.journal.Unwritten() {
		e.obey(control.Order{Written: &control.Written{Records: len(records)}})
	}
	if s := e.state(); len(s.Flows) > 0 {
		t.Errorf("after the record is written: %+v", s.Flows)
	}
}

// TestEndHandsOver ends an engine with open connections and records that wait. The holder gets all records before the last report.
func TestEndHandsOver(t *testing.T) {
	e, s := join(t, Settings{World: &fakeWorld{serve: echo}, First: writable(control.Rules{Generation: 1, Learn: true})})
	const connections, others = 20, 1000
	for range connections {
		c := mustDial(t, s, "evil.test", 22)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range others {
		e.journal.Add(control.Record{Kind: control.KindRequest, Name: "api.test"})
	}
	holder := &writer{orders: make(chan control.Order, 100), ends: make(chan struct{}), whole: make(chan []control.Record, 1)}
	holder.orders <- control.Order{End: true}
	ended := make(chan struct{})
	go func() {
		e.report(holder)
		close(ended)
	}()
	flows, requests := 0, 0
	for _, r := range <-holder.whole {
		switch {
		case r.Kind == control.KindFlow && r.Name == "evil.test" && r.Received == 1:
			flows++
		case r.Kind == control.KindRequest:
			requests++
		}
	}
	if flows != connections || requests < others-connections-1 {
		t.Errorf("%d of %d connections, %d of %d requests", flows, connections, requests, others)
	}
	close(holder.ends)
	<-ended
}
