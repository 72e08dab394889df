package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
)

// answers has the buffers for the content of answers. The size is that of the content of a TLS record.
type answers struct{}

var answerBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// Get implements [httputil.BufferPool].
func (answers) Get() []byte { return answerBuffers.Get().(*[16 << 10]byte)[:] }

// Put implements [httputil.BufferPool].
func (answers) Put(b []byte) { answerBuffers.Put((*[16 << 10]byte)(b)) }

// answered checks an answer. One that contains the value of the request's credential is cut, and an alarm is recorded.
func (p *requests) answered(r *http.Response) error {
	x := roundTripOf(r.Request.Context())
	if x.status = r.StatusCode; x.used == nil {
		return nil
	}
	if changed := p.engine.credentials.Answered(x.used.Name, r.StatusCode); credential.IsRefusal(r.StatusCode) {
		p.engine.awaitRefusal(changed)
	} else if changed {
		p.engine.changed()
	}
	if r.StatusCode == http.StatusUnauthorized {
		select {
		case p.engine.stale <- x.used.Name:
		default: // another one is reported, and this one with its next 401
		}
	}
	found := func() {
		x.failed = credential.ErrEcho.Error()
		alarm := p.flow.record(control.KindAlarm, "", fmt.Sprintf("an answer of %s contained the value of the credential %s, and was cut", p.flow.name, x.used.Name))
		alarm.Credential = x.used.Name
		p.engine.journal.Add(alarm)
	}
	err := x.echoes.Guard(r, found)
	if errors.Is(err, credential.ErrEcho) {
		found()
	}
	return err
}

// finalOnly does not pass on what a server sends before its answer, such as early hints.
type finalOnly struct{ http.ResponseWriter }

func (w finalOnly) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets the package http find further methods.
func (w finalOnly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers a request that could not be passed on.
func (p *requests) fail(w http.ResponseWriter, r *http.Request, err error) {
	x := roundTripOf(r.Context())
	var denied *deniedError
	if x.failed = err.Error(); errors.As(err, &denied) || errors.Is(err, pending.ErrUnrecorded) {
		x.status = http.StatusForbidden
		answerDenied(w, r, err)
		return
	}
	x.failed = x.reason(err)
	x.status = http.StatusBadGateway
	w.WriteHeader(x.status)
	fmt.Fprintln(w, clip(x.failed)) // the client may be gone
}

// reason describes why a request failed. net/http quotes the server in its errors, which therefore are not described where the server
// knows the value of a credential.
func (x *roundTrip) reason(err error) string {
	const untrusted = "the server's certificate is not trusted"
	wrong, isWrong := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case isWrong && x.used == nil:
		return untrusted + ": " + wrong.Err.Error()
	case isWrong:
		return untrusted
	case x.used == nil:
		return err.Error()
	}
	for _, known := range []error{credential.ErrEcho, credential.ErrUnsearchable, context.Canceled, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if own, ok := errors.AsType[*dialError](err); ok {
		return own.Error()
	}
	if own, ok := errors.AsType[*net.OpError](err); ok {
		return own.Error()
	}
	return "the server has sent no answer that can be read"
}

// A dialError is why a connection to a server could not be made.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }
