package hello

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Errors of a client that ends a connection before its handshake is complete. They contain no address and no port, so that the records of such
// connections have the same reason.
var (
	errSilent = errors.New("the client sent nothing")
	errLate   = errors.New("the client did not finish the handshake in time")
	errEnded  = errors.New("the client closed the connection during the handshake")
)

// refusing are the alerts of clients that do not accept a certificate (RFC 8446, section 6.2): bad_certificate, unsupported_certificate,
// certificate_revoked, certificate_expired, certificate_unknown and unknown_ca.
var refusing = []tls.AlertError{42, 43, 44, 45, 46, 48}

// Unfinished reports whether an error of [Read] or [ReadSecond] is about a client that sent no whole hello, and that may have been about to
// send any.
func Unfinished(err error) bool {
	return errors.Is(err, errSilent) || errors.Is(err, errLate) || errors.Is(err, errEnded)
}

// unfinished returns the error for a connection that failed after some bytes of the client, or nil if the bytes are the reason.
func unfinished(err error, read int) error {
	operation, onSocket := errors.AsType[*net.OpError](err)
	late, isNetwork := errors.AsType[net.Error](err)
	switch ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); {
	case errors.Is(err, context.DeadlineExceeded), isNetwork && late.Timeout():
		err = errLate
	case ended, errors.Is(err, net.ErrClosed), onSocket && (operation.Op == "read" || operation.Op == "write"):
		err = errEnded
	default:
		return nil
	}
	if read == 0 {
		err = errSilent
	}
	return err
}

// AlertSize is the length of a record with an alert that is not encrypted.
const AlertSize = headerSize + 2

// Alerted returns the error of a handshake whose last bytes from the client are known. OpenSSL sends its alert about a certificate without
// encryption also in TLS 1.3, so that crypto/tls reports a wrong checksum in its place.
func Alerted(last []byte, err error) error {
	if len(last) != AlertSize || last[0] != alert || contentLength(last) != AlertSize-headerSize {
		return err
	}
	return &net.OpError{Op: remoteAlert, Err: tls.AlertError(last[AlertSize-1])}
}

// remoteAlert is the operation of an error of crypto/tls for an alert of the other end.
const remoteAlert = "remote error"

// Reason describes for the ledger why a handshake with a client failed after its hello.
func Reason(err error) string {
	if ended := unfinished(err, 1); ended != nil {
		return ended.Error()
	}
	operation, onSocket := errors.AsType[*net.OpError](err) // also of an alert, see crypto/tls
	if !onSocket {
		return "TLS with the client fails: " + err.Error()
	}
	text := operation.Err.Error()
	if operation.Op == remoteAlert && slices.ContainsFunc(refusing, func(alert tls.AlertError) bool { return alert.Error() == text }) {
		return control.ReasonCertificate + text
	}
	return "TLS with the client fails: " + text
}
