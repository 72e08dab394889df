// Package hello reads the messages of TLS connections that are not encrypted and in which a client names its server.
package hello

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

const (
	// Max is how many bytes a client may send until it has named the server.
	Max = 64 << 10
	// Patience is how long a client may take to name the server, and to end the handshake after that. On a busy machine, a program that opens
	// many connections at once needs more than 10 seconds. Servers wait for a minute, for example nginx.
	Patience = 45 * time.Second
	// encryptedHello is the extension of a client that hides the name (RFC 9849).
	encryptedHello = 0xfe0d
	// headerSize is the length of the header of a TLS record: its type, a version, and the length of its content.
	headerSize = 5
	// messageHeader is the length of the header of a handshake message: its type, and the length of the rest.
	messageHeader = 4
)

var errRead = errors.New("hello is read")

// Hello is a client hello, the first message of a TLS connection, which is not encrypted.
type Hello struct {
	Name      string // the server's, as the client sent it; empty if it names none
	Encrypted bool   // the client may hide another name
	Bytes     []byte // all bytes that were read
}

// Read reads the client hello of a TLS connection, which may be split into several records and packets. It reads no byte after the hello,
// and refuses a hello in whose last record another message begins. After an error, too, the result has the bytes that were read. Read
// writes nothing.
func Read(c net.Conn) (Hello, error) { return read(c, nil) }

// read is Read after the bytes before, which were read already.
func read(c net.Conn, before []byte) (h Hello, err error) {
	if err := c.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return h, err
	}
	r := &reader{Conn: c, before: before}
	config := &tls.Config{MinVersion: tls.VersionTLS10, GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.Name, h.Encrypted = info.ServerName, slices.Contains(info.Extensions, encryptedHello)
		return nil, errRead
	}}
	err = tls.Server(r, config).HandshakeContext(context.Background())
	h.Bytes = r.read.Bytes()
	if !errors.Is(err, errRead) {
		if ended := unfinished(err, len(h.Bytes)); ended != nil {
			return h, ended
		}
		return h, fmt.Errorf("no TLS: %w", err)
	}
	if !alone(h.Bytes) {
		return h, errors.New("another message follows the client hello in its record")
	}
	c.SetReadDeadline(time.Time{}) // if this fails, the next read fails, too
	return h, nil
}

// alone reports whether whole records have one handshake message.
func alone(records []byte) bool {
	var message []byte
	for len(records) >= headerSize {
		n := headerSize + contentLength(records)
		if n > len(records) {
			return false
		}
		message, records = append(message, records[headerSize:n]...), records[n:]
	}
	return len(message) >= messageHeader && len(message) == messageHeader+int(binary.BigEndian.Uint32(message)&0xffffff)
}

// contentLength returns the length of the content of a record, which its header names.
func contentLength(header []byte) int { return int(binary.BigEndian.Uint16(header[3:])) }

// reader reads records, and not beyond the one that is asked for. It keeps the bytes that are read, up to Max, and discards the bytes that
// are written.
type reader struct {
	net.Conn
	before []byte // bytes that were read already, and that Read returns first
	read   bytes.Buffer
	record int // where the current record begins
}

func (r *reader) Read(p []byte) (n int, err error) {
	left := min(r.unread(), Max-r.read.Len())
	if left <= 0 {
		return 0, fmt.Errorf("more than %d bytes: %w", Max, io.ErrShortBuffer)
	}
	if p = p[:min(len(p), left)]; len(r.before) > 0 {
		n = copy(p, r.before)
		r.before = r.before[n:]
	} else {
		n, err = r.Conn.Read(p)
	}
	r.read.Write(p[:n])
	return n, err
}

// unread returns how many bytes of the current record, or of its header, were not read.
func (r *reader) unread() int {
	have := r.read.Bytes()[r.record:]
	if len(have) >= headerSize {
		whole := headerSize + contentLength(have)
		if len(have) < whole {
			return whole - len(have)
		}
		r.record, have = r.record+whole, have[whole:]
	}
	return headerSize - len(have)
}

func (*reader) Write(p []byte) (int, error) { return len(p), nil }

func (*reader) SetWriteDeadline(time.Time) error { return nil }
