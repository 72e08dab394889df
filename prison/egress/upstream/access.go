package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/words"
)

// maxReason bounds the reason of a failure in the state of a network, in characters.
const maxReason = 200

// Access has the password of a network's proxy, and the last failure of the proxy. The zero value is ready for use. A nil pointer keeps
// nothing.
type Access struct {
	mu       sync.Mutex
	password string
	proxy    Proxy                 // that failed
	failed   *control.ProxyFailure // nil after a connection was made
}

// Take removes the password of the proxy from the values of credentials, and keeps it.
func (a *Access) Take(values map[string]string) {
	password, some := values[control.ProxyPassword]
	if !some {
		return
	}
	delete(values, control.ProxyPassword)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.password = password
}

// Way returns the way through a proxy, or nil for the zero value.
func (a *Access) Way(p Proxy, roots func() (*x509.CertPool, error)) *Way {
	if p == (Proxy{}) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Way{Proxy: p, Password: a.password, Roots: roots, Access: a}
}

// Failed returns the last failure of a proxy, or nil if a connection was made since.
func (a *Access) Failed(p Proxy) *control.ProxyFailure {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proxy != p {
		return nil
	}
	return a.failed
}

// note stores the result of a connection through a proxy.
func (a *Access) note(p Proxy, target string, err error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proxy, a.failed = p, nil; err != nil {
		a.failed = &control.ProxyFailure{Reason: words.Clip(cause(err), maxReason), Login: errors.Is(err, statusError(http.StatusProxyAuthRequired)), Target: target, Time: time.Now().UTC()}
	}
}

// A failure is an error of a proxy. Its text begins with the cause, because records cut the end. It has neither the URL nor the address of
// the proxy: an agent can get the text, and the URL may name the user.
type failure struct{ err error }

func (f *failure) Error() string { return "the proxy fails: " + cause(f.err) }

func (f *failure) Unwrap() error { return f.err }

// IsFailure reports whether an error is one of a proxy, and not of a server behind it.
func IsFailure(err error) bool {
	_, is := errors.AsType[*failure](err)
	return is
}

// A statusError is the status of an answer to CONNECT that is not success.
type statusError int

func (s statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("it answers %d %s", int(s), http.StatusText(int(s))))
}

// errNotHTTP reports an answer that cannot be read. It does not quote the answer, which could repeat the password.
var errNotHTTP = errors.New("its answer is not HTTP")

// cause describes why a proxy fails, without the proxy's address.
func cause(err error) string {
	untrusted, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	name, isName := errors.AsType[*net.DNSError](err)
	number, isNumber := errors.AsType[syscall.Errno](err)
	operation, isOperation := errors.AsType[*net.OpError](err)
	switch {
	case isUntrusted:
		return "its certificate is not trusted: " + strings.TrimPrefix(untrusted.Err.Error(), "x509: ")
	case isName:
		return "its name cannot be looked up: " + name.Err
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "it does not answer"
	case isNumber && (number == syscall.ECONNRESET || number == syscall.EPIPE):
		return "it ends the connection: " + number.Error()
	case isNumber:
		return "no connection to it: " + number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends the connection before it has answered"
	case isOperation && strings.HasPrefix(operation.Op, "socks"):
		return "it answers: " + strings.TrimPrefix(operation.Err.Error(), "unknown error ")
	case isOperation:
		return operation.Err.Error()
	}
	return err.Error()
}
