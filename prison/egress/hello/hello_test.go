package hello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// helloOf returns the client hello of crypto/tls.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		tls.Client(theirs, config).Handshake()
		theirs.Close()
	}()
	defer ours.Close()
	buf := make([]byte, 64<<10)
	n, err := ours.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// sent returns a connection that delivers content in pieces and is then closed.
func sent(t testing.TB, content []byte, piece int) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		for len(content) > 0 {
			n, err := theirs.Write(content[:min(piece, len(content))])
			if err != nil {
				return
			}
			content = content[n:]
		}
		theirs.Close()
	}()
	t.Cleanup(func() { ours.Close() })
	return ours
}

// inRecords cuts the handshake message of a record into many records.
func inRecords(record []byte, size int) (out []byte) {
	for body := record[5:]; len(body) > 0; {
		n := min(size, len(body))
		out = append(out, record[:3]...)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, body[:n]...)
		body = body[n:]
	}
	return out
}

func TestRead(t *testing.T) {
	plain := helloOf(t, &tls.Config{ServerName: "Files.Test", MinVersion: tls.VersionTLS12})
	long := helloOf(t, &tls.Config{ServerName: "files.test", NextProtos: slicesOf(strings.Repeat("p", 200), 60)})
	for name, c := range map[string]struct {
		content []byte
		piece   int
	}{
		"whole": {plain, 1 << 20}, "byte by byte": {plain, 1}, "in records of 7 bytes": {inRecords(plain, 7), 1 << 20},
		"in records of 1 byte, byte by byte": {inRecords(plain, 1), 1}, "with 12 kB": {long, 1000},
	} {
		h, err := Read(sent(t, c.content, c.piece))
		if err != nil || !strings.EqualFold(h.Name, "files.test") || !bytes.Equal(h.Bytes, c.content) {
			t.Errorf("%s: %q, %d bytes of %d, %v", name, h.Name, len(h.Bytes), len(c.content), err)
		}
	}
	if len(long) < 12<<10 {
		t.Errorf("the long hello has %d bytes", len(long))
	}
}

func slicesOf(text string, n int) (list []string) {
	for i := range n {
		list = append(list, text[:len(text)-1]+string(rune('a'+i%26)))
	}
	return list
}

// TestEncryptedHello sees the extension of a client that hides the name.
func TestEncryptedHello(t *testing.T) {
	record := helloOf(t, &tls.Config{ServerName: "files.test"})
	// An outer hello: ciphers, the key's number, a key, what is hidden.
	body := append([]byte{0, 0, 1, 0, 1, 7, 0, 32}, make([]byte, 32)...)
	body = append(append(body, 0, 16), make([]byte, 16)...)
	extension := append([]byte{0xfe, 0x0d, 0, byte(len(body))}, body...)
	// The extensions come last. Three lengths count them: of the record, the message and the extensions.
	at := extensionsAt(record)
	grow := func(at int, by uint16) {
		binary.BigEndian.PutUint16(record[at:], binary.BigEndian.Uint16(record[at:])+by)
	}
	grow(3, uint16(len(extension)))
	grow(7, uint16(len(extension)))
	grow(at, uint16(len(extension)))
	// Before the others, as the one for keys shared before must be last.
	record = append(record[:at+2], append(extension, record[at+2:]...)...)
	h, err := Read(sent(t, record, 1<<20))
	if err != nil || !h.Encrypted || h.Name != "files.test" {
		t.Errorf("%+v, %v", h, err)
	}
}

// extensionsAt returns the position of the length of the extensions, which is after version, random, session id, ciphers and compressions.
func extensionsAt(record []byte) int {
	at := 5 + 4 + 2 + 32
	at += 1 + int(record[at])
	at += 2 + int(binary.BigEndian.Uint16(record[at:]))
	return at + 1 + int(record[at])
}

func TestNoHello(t *testing.T) {
	for name, content := range map[string][]byte{
		"nothing": nil, "SSH": []byte("SSH-2.0-x\r\n"), "HTTP": []byte("GET / HTTP/1.1\r\n\r\n"),
		"half": helloOf(t, &tls.Config{ServerName: "files.test"})[:40], "endless": bytes.Repeat([]byte{22, 3, 1, 64, 0}, 64<<10),
	} {
		h, err := Read(sent(t, content, 4096))
		if err == nil || len(h.Bytes) > Max {
			t.Errorf("%s: %q of %d bytes, %v", name, h.Name, len(h.Bytes), err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(helloOf(f, &tls.Config{ServerName: "files.test"}))
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add(inRecords(helloOf(f, &tls.Config{ServerName: "files.test"}), 7))
	f.Fuzz(func(t *testing.T, content []byte) {
		c := &fakeConn{Reader: bytes.NewReader(content)}
		h, err := Read(c)
		if len(h.Bytes) > Max || !bytes.HasPrefix(content, h.Bytes) {
			t.Errorf("%d bytes were read, which did not come", len(h.Bytes))
		}
		if err == nil && h.Name == "files.test" && !bytes.Contains(bytes.ToLower(h.Bytes), []byte("test")) && len(h.Bytes) < 60 {
			t.Errorf("a name from nowhere: %q", h.Bytes)
		}
	})
}

// fakeConn reads from memory.
type fakeConn struct {
	net.Conn
	io.Reader
}

func (c *fakeConn) Read(p []byte) (int, error)    { return c.Reader.Read(p) }
func (*fakeConn) SetReadDeadline(time.Time) error { return nil }
func (*fakeConn) SetDeadline(time.Time) error     { return nil }
func (*fakeConn) Close() error                    { return nil }
