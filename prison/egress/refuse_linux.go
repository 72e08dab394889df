package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/hello"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
	"github.com/git-airlock/git-airlock/prison/egress/single"
)

const (
	// lingering is how long a client may take to read a refusal, and maxLingering how many bytes it may send meanwhile.
	lingering    = 2 * time.Second
	maxLingering = 64 << 10
)

// accessDenied is a fatal alert that TLS clients show in words: a record with the alert access_denied (RFC 8446, section 6).
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// errEncrypted is the only refusal of a hello that a rule can lift, with the option "ech".
var errEncrypted = errors.New(control.ReasonEncrypted)

// checkHello returns an error unless the client names the server of a canonical name and hides no other name. If hidden is true, it may
// hide one.
func checkHello(h hello.Hello, name string, hidden bool) error {
	switch said, err := Canonical(h.Name); {
	case h.Name == "":
		return errors.New("the client names no server")
	case err != nil:
		return err
	case !isASCII(h.Name): // a server compares the name without converting it
		return errors.New("the client names the server in characters other than ASCII")
	case said != name:
		return fmt.Errorf("the client names %q", clip(said))
	case h.Encrypted && !hidden:
		return errEncrypted
	}
	return nil
}

// tellTLS reads the client hello of a TLS connection, and refuses the connection.
func tellTLS(c net.Conn) {
	if _, err := hello.Read(c); err == nil {
		sayDenied(c)
	}
}

// sayDenied sends the alert that a TLS client shows as "access denied". Then it waits for the client to close: if this end closed with
// unread data, the client would get a reset and lose the alert.
func sayDenied(c net.Conn) {
	c.SetDeadline(time.Now().Add(lingering))
	if _, err := c.Write(accessDenied); err != nil {
		return
	}
	if closeWrite(c) == nil {
		io.Copy(io.Discard, io.LimitReader(c, maxLingering)) //nolint:errcheck // the connection ends in any case
	}
}

// tellHTTP answers requests of plain HTTP with a refusal.
func tellHTTP(c net.Conn, f *flow, refusal error) {
	c.SetDeadline(time.Now().Add(hello.Patience))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerDenied(w, r, f, refusal) })
	single.Serve(context.Background(), c, nil, nil, h) //nolint:errcheck // only a handshake fails
}

// refuse refuses a request beyond those that may be on their way at a time. A client that does not read the answer gets none.
func (p *requests) refuse(w http.ResponseWriter, r *http.Request) {
	denied := &deniedError{reason: "too many requests at a time", final: true, status: http.StatusServiceUnavailable}
	record := p.flow.record(control.KindRefusal, control.VerdictDeny, reasonOf(denied))
	record.Seen, record.Sent, record.Received, record.Millis = control.SeenRequest, 0, 0, 0
	p.engine.countRefusal(record)
	c := http.NewResponseController(w)
	if c.SetReadDeadline(time.Now().Add(lingering)) == nil && c.SetWriteDeadline(time.Now().Add(lingering)) == nil {
		answerDenied(w, r, p.flow, denied)
	}
}

// answerDenied answers a request with a refusal, and with the command that allows the request, if there is one. The answer contains neither
// the address of a name nor the name of this program.
func answerDenied(w http.ResponseWriter, r *http.Request, f *flow, refusal error) {
	denied, ok := errors.AsType[*deniedError](refusal)
	if !ok {
		denied = &deniedError{reason: pending.ErrUnrecorded.Error(), final: true}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	} else { // with HTTP/2, the answer to a request that is not read is lost
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxLingering)) // the client may be gone
	}
	w.WriteHeader(cmp.Or(denied.status, http.StatusForbidden))
	text := cmp.Or(denied.told, denied.reason)
	switch { // errors are ignored: the client may be gone
	case denied.final:
		fmt.Fprintf(w, "%q: %s.\n", clip(r.Host), text)
	case denied.reason == control.ReasonLockdown:
		fmt.Fprintf(w, "This network does not lead to %q: %s.\nIf the task needs it, ask the user to end that: net unlock\n", clip(r.Host), text)
	case denied.reason == control.ReasonDenied, denied.reason == control.ReasonDeniedRequest: // a permission would not help
		fmt.Fprintf(w, "This network does not lead to %q: %s.\nIf the task needs it, ask the user to end the denial: net explain\n", clip(r.Host), text)
	default:
		fmt.Fprintf(w, "This network does not lead to %q: %s.\nIf the task needs it, ask the user to allow it: net allow %s\n", clip(r.Host), text, cmp.Or(denied.allow, f.name))
	}
}
