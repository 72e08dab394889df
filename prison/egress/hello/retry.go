package hello

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// answerPatience is how long a server may take to answer a client hello.
	answerPatience = time.Minute
	// maxAnswer is how many bytes of alerts and records a server may send before its hello ends.
	maxAnswer = 64 << 10
	// maxEarly is how many bytes a client may send before its second hello: a program may send its first request with the first hello.
	maxEarly = 1 << 20
)

// Types of records (RFC 8446, section 5.1).
const (
	changeCipherSpec = 20
	alert            = 21
	handshake        = 22
	applicationData  = 23
)

// serverHello is the type of the handshake message with which a server answers. The random of the server follows its header and a version.
const serverHello = 2

// retryRandom is the random of a server hello that asks for a second client hello (RFC 8446, section 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// Answer reads the answer of a server to a client hello, until it is known whether the server asks for a second client hello. answer has the
// bytes that were read, also after an error. A server that ends the connection asks for none.
func Answer(far net.Conn) (answer []byte, again bool, err error) {
	if err := far.SetReadDeadline(time.Now().Add(answerPatience)); err != nil {
		return nil, false, err
	}
	var message []byte
	const size = messageHeader + 2 // where the random begins
	for len(message) < size+len(retryRandom) {
		begin := len(answer)
		if answer, err = readRecord(far, answer); err != nil {
			if len(answer) == begin && errors.Is(err, io.EOF) {
				break
			}
			return answer, false, err
		}
		switch kind := answer[begin]; {
		case kind == handshake:
			message = append(message, answer[begin+headerSize:]...)
		case kind != alert: // no TLS, or none that a client could answer
			return answer, false, far.SetReadDeadline(time.Time{})
		}
		if len(answer) > maxAnswer {
			return answer, false, fmt.Errorf("the server has sent %d bytes without an answer", len(answer))
		}
	}
	again = len(message) >= size+len(retryRandom) && message[0] == serverHello && bytes.Equal(message[size:size+len(retryRandom)], retryRandom)
	return answer, again, far.SetReadDeadline(time.Time{})
}

// readRecord reads a record and appends it to what was read before. An error can come after a part.
func readRecord(c io.Reader, before []byte) ([]byte, error) {
	var header [headerSize]byte
	n, err := io.ReadFull(c, header[:])
	before = append(before, header[:n]...)
	if err != nil {
		return before, err
	}
	content := make([]byte, contentLength(header[:]))
	n, err = io.ReadFull(c, content)
	return append(before, content[:n]...), err
}

// ReadSecond reads the second client hello of a connection whose server asks for it. The bytes include what a client may send before: data
// that the server discards.
func ReadSecond(c net.Conn) (h Hello, err error) {
	if err := c.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return h, err
	}
	var early []byte
	for {
		var header [headerSize]byte
		n, err := io.ReadFull(c, header[:])
		switch kind := header[0]; {
		case err != nil:
			return Hello{Bytes: append(early, header[:n]...)}, cmp.Or(unfinished(err, 1), err)
		case kind == handshake:
			h, err = read(c, header[:])
			h.Bytes = append(early, h.Bytes...)
			return h, err
		case kind != changeCipherSpec && kind != alert && kind != applicationData, len(early) > maxEarly:
			return Hello{Bytes: early}, fmt.Errorf("no TLS: a record of type %d instead of a second client hello", kind)
		}
		early = append(early, header[:]...)
		content := make([]byte, contentLength(header[:]))
		n, err = io.ReadFull(c, content)
		if early = append(early, content[:n]...); err != nil {
			return Hello{Bytes: early}, cmp.Or(unfinished(err, 1), err)
		}
	}
}
