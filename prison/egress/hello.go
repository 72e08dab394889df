package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

const (
	// maxHello is how many bytes a client may send until it has named the server.
	maxHello = 64 << 10
	// helloPatience is how long a client may take to name the server.
	helloPatience = 10 * time.Second
	// encryptedHello is the extension of a client that hides the name (RFC 9849).
	encryptedHello = 0xfe0d
)

// accessDenied is a fatal alert that TLS clients show in words: a record with the alert access_denied (RFC 8446, section 6).
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

var (
	errHelloRead = errors.New("hello is read")
	// errEncrypted is the only refusal of a hello that a rule can lift, with the option "ech".
	errEncrypted = errors.New("encrypted client hello")
)

// Hello is a client hello, the first message of a TLS connection, which is not encrypted.
type Hello struct {
	Name      string // the server's, as the client sent it; empty if it names none
	Encrypted bool   // the client may hide another name
	Bytes     []byte // all bytes that were read
}

// ReadHello reads the client hello of a TLS connection, which may be split into several records and packets. After an error, too, the
// result has the bytes that were read. ReadHello writes nothing.
func ReadHello(c net.Conn) (h Hello, err error) {
	if err := c.SetReadDeadline(time.Now().Add(helloPatience)); err != nil {
		return h, err
	}
	r := &helloReader{Conn: c}
	config := &tls.Config{MinVersion: tls.VersionTLS10, GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.Name, h.Encrypted = info.ServerName, slices.Contains(info.Extensions, encryptedHello)
		return nil, errHelloRead
	}}
	err = tls.Server(r, config).HandshakeContext(context.Background())
	h.Bytes = r.read.Bytes()
	if !errors.Is(err, errHelloRead) {
		return h, fmt.Errorf("no TLS: %w", err)
	}
	c.SetReadDeadline(time.Time{}) // if this fails, the next read fails, too
	return h, nil
}

// Check returns an error unless the client names the server of a canonical name and hides no other name. If hidden is true, it may hide
// one.
func (h Hello) Check(name string, hidden bool) error {
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

// helloReader keeps the bytes that are read, up to maxHello, and discards the bytes that are written.
type helloReader struct {
	net.Conn
	read bytes.Buffer
}

func (r *helloReader) Read(p []byte) (int, error) {
	left := maxHello - r.read.Len()
	if left <= 0 {
		return 0, fmt.Errorf("more than %d bytes: %w", maxHello, io.ErrShortBuffer)
	}
	n, err := r.Conn.Read(p[:min(len(p), left)])
	r.read.Write(p[:n])
	return n, err
}

func (*helloReader) Write(p []byte) (int, error) { return len(p), nil }

func (*helloReader) SetWriteDeadline(time.Time) error { return nil }
