// Package failure describes why a request got no answer from its server. The user reads all of the reason. A program inside reads a [Kind]:
// the errors of this machine have its own addresses, those of its network, and the user's name at a proxy. Begin with [Of].
package failure

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// A Kind is a failure in words that a program inside may read. No text can become a Kind.
type Kind struct{ of kind }

type kind int

const (
	unreadable kind = iota // any error that no other kind describes
	viaProxy
	unknownName
	unconnected
	untrusted
	insecure
	closed
	silent
	ended
	echo
	unsearchable
	unanswered
)

// words are all words that a program inside can get.
var words = [...]string{
	unreadable:   "the server has sent no answer that can be read",
	viaProxy:     "the proxy of this network fails",
	unknownName:  "the server's name cannot be looked up",
	unconnected:  "no connection to the server",
	untrusted:    "the server's certificate is not trusted",
	insecure:     "TLS with the server fails",
	closed:       "the server closed the connection before its answer",
	silent:       "the server does not answer",
	ended:        "the client or new rules ended the request",
	echo:         credential.ErrEcho.Error(),
	unsearchable: credential.ErrUnsearchable.Error(),
	unanswered:   credential.ErrUnanswered.Error(),
}

// String returns the words.
func (k Kind) String() string { return words[k.of] }

// Dial is an error of a connection that could not be made.
type Dial struct{ Err error }

func (d *Dial) Error() string { return d.Err.Error() }

func (d *Dial) Unwrap() error { return d.Err }

// Of returns the kind of an error of a request.
func Of(err error) Kind {
	k := answering(err)
	if _, dials := errors.AsType[*Dial](err); dials && k != ended {
		k = dialing(err)
	}
	return Kind{k}
}

// dialing returns the kind of an error of a connection that could not be made.
func dialing(err error) kind {
	if upstream.IsFailure(err) {
		return viaProxy
	}
	if _, isName := errors.AsType[*net.DNSError](err); isName {
		return unknownName
	}
	return unconnected
}

// endings are the errors of a connection that was closed.
var endings = []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE}

// answering returns the kind of an error on a connection to the server.
func answering(err error) kind {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	operation, onSocket := errors.AsType[*net.OpError](err)
	late, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, credential.ErrEcho):
		return echo
	case errors.Is(err, credential.ErrUnsearchable):
		return unsearchable
	case errors.Is(err, credential.ErrUnanswered):
		return unanswered
	case errors.Is(err, context.Canceled):
		return ended
	case slices.ContainsFunc(endings, func(end error) bool { return errors.Is(err, end) }):
		return closed
	case wrong:
		return untrusted
	case notTLS, onSocket && (operation.Op == "remote error" || operation.Op == "local error"): // alerts, see crypto/tls
		return insecure
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isNetwork && late.Timeout():
		return silent
	case onSocket:
		return unconnected
	}
	return unreadable
}

// streamError is an error with which a server ends a request over HTTP/2. The package net/http fills it, as it fills the type of that name in
// golang.org/x/net/http2.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return "the server has sent error " + strconv.FormatUint(uint64(e.Code), 10) + " of HTTP/2"
}

// Reason describes an error for the ledger. Some errors quote the server. If the server can know the value of a credential, which no record
// may have, Reason leaves these words out. The texts of the package net/http about an answer that it cannot read are never part of it: they
// quote the server, and name parts of that package.
func Reason(err error, guarded bool) string {
	k := Of(err)
	wrong, _ := errors.AsType[*tls.CertificateVerificationError](err)
	operation, onSocket := errors.AsType[*net.OpError](err)
	stream, ofStream := errors.AsType[streamError](err)
	switch {
	case k.of == viaProxy, k.of == unknownName, k.of == unconnected:
		return err.Error()
	case onSocket && (k.of == insecure || k.of == closed || k.of == silent): // without the addresses, of which the record has the server's
		return k.String() + ": " + operation.Err.Error()
	case k.of == untrusted && !guarded:
		return k.String() + ": " + wrong.Err.Error()
	case k.of == unreadable && !guarded && ofStream:
		return k.String() + ": " + stream.Error()
	}
	return k.String()
}
