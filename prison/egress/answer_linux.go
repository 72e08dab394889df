package egress

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/failure"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
)

// answers is the pool of buffers for the content of answers. A buffer is as large as the content of a TLS record.
type answers struct{}

var answerBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// Get implements [httputil.BufferPool].
func (answers) Get() []byte { return answerBuffers.Get().(*[16 << 10]byte)[:] }

// Put implements [httputil.BufferPool].
func (answers) Put(b []byte) { answerBuffers.Put((*[16 << 10]byte)(b)) }

// secret is a credential of a server with its value, which no answer of the server may contain: the server can know the value even if the
// request does not have it.
type secret struct {
	boundCredential
	value  string
	echoes credential.Echoes
}

// secretsOf returns the credentials of a server whose values are known.
func (e *Engine) secretsOf(rules *Policy, name string) (all []secret) {
	for _, c := range rules.credentials {
		if value, echoes, ok := e.credentials.Get(c.Name); ok && c.about(name) {
			all = append(all, secret{c, value, echoes})
		}
	}
	return all
}

// answered checks an answer. If it contains the value of a credential of the server, answered cuts it and records an alarm.
func (p *requests) answered(r *http.Response) error {
	x := roundTripOf(r.Request.Context())
	if x.status = r.StatusCode; x.used != nil {
		p.done(x, true)
		p.judged(x.used.Name, r.StatusCode)
	}
	for _, s := range x.secrets {
		found := func() {
			x.failed = credential.ErrEcho.Error()
			alarm := p.flow.record(control.KindAlarm, "", fmt.Sprintf("an answer of %s contained the value of the credential %s, and was cut", p.flow.name, s.Name))
			alarm.Credential = s.Name
			p.engine.journal.Add(alarm)
		}
		if err := s.echoes.Guard(r, found); err != nil {
			if errors.Is(err, credential.ErrEcho) {
				found()
			}
			return err
		}
	}
	return nil
}

// done stores that a request with a credential has an answer, or has ended without one.
func (p *requests) done(x *roundTrip, answered bool) {
	if x.waits {
		x.waits = false
		p.engine.credentials.Done(x.used.Name, answered, time.Now())
		p.engine.changed()
	}
}

// judged stores whether a server has refused the value of a credential or failed, as the status of its answer says, and reports it to the holder.
func (p *requests) judged(name string, status int) {
	// An answer that ends a refusal waits, too: the holder keeps the last state of a network that ends.
	if changed := p.engine.credentials.Answered(name, status); changed || control.IsBad(status) {
		p.engine.awaitState(changed, p.engine.urgent)
	}
	if status == http.StatusUnauthorized {
		select {
		case p.engine.stale <- name:
		default: // another name waits to be reported; this one is reported with its next 401
		}
	}
}

// finalOnly drops the answers that a server sends before the final one, such as early hints.
type finalOnly struct{ http.ResponseWriter }

func (w finalOnly) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets the package http find further methods.
func (w finalOnly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers a request that could not be passed on. The ledger gets all of the reason, and the client only its kind.
func (p *requests) fail(w http.ResponseWriter, r *http.Request, err error) {
	x := roundTripOf(r.Context())
	var denied *deniedError
	if x.failed = err.Error(); errors.As(err, &denied) || errors.Is(err, pending.ErrUnrecorded) {
		x.status = http.StatusForbidden
		answerDenied(w, r, p.flow, err)
		return
	}
	x.failed = failure.Reason(err, len(x.secrets) > 0)
	x.status = http.StatusBadGateway
	w.WriteHeader(x.status)
	fmt.Fprintln(w, failure.Of(err)) // the client may be gone
}
