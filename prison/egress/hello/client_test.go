package hello

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowClients reads the hellos of clients that wait before they begin, that send a byte a second, and that never finish. The time that a
// client has is bounded, whatever it sends meanwhile.
func TestSlowClients(t *testing.T) {
	plain := helloOf(t, &tls.Config{ServerName: "files.test"})
	slow := func(content []byte) func(net.Conn) {
		return func(c net.Conn) {
			for i := range content {
				time.Sleep(time.Second)
				if _, err := c.Write(content[i : i+1]); err != nil {
					return
				}
			}
			time.Sleep(time.Hour)
		}
	}
	for name, x := range map[string]struct {
		client func(net.Conn)
		want   error
		within time.Duration
	}{
		"late": {func(c net.Conn) {
			time.Sleep(30 * time.Second)
			c.Write(plain)
		}, nil, 31 * time.Second},
		"a byte a second": {slow(plain), errLate, Patience},
		"nothing":         {slow(nil), errSilent, Patience},
		"half":            {func(c net.Conn) { c.Write(plain[:40]) }, errEnded, 0},
		"closed":          {func(net.Conn) {}, errSilent, 0},
	} {
		for form, read := range map[string]func(net.Conn) (Hello, error){"first": Read, "second": ReadSecond} {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				go func() {
					x.client(theirs)
					synctest.Wait() // unlike a connection, a pipe that is closed takes no deadline
					theirs.Close()
				}()
				want, within := x.want, x.within
				if form == "second" { // after the header of a record, the time begins again
					within *= 2
				}
				if form == "second" && errors.Is(want, errSilent) { // it has sent a hello before
					want = map[bool]error{true: errLate, false: errEnded}[within > 0]
				}
				begun := time.Now()
				_, err := read(ours)
				if took := time.Since(begun); !errors.Is(err, want) || took > within {
					t.Errorf("%s, %s hello: %v after %s, want %v", name, form, err, took, want)
				}
				if Unfinished(err) != (want != nil) {
					t.Errorf("%s, %s hello: unfinished %t", name, form, want == nil)
				}
				ours.Close()
				time.Sleep(2 * time.Hour) // until the client has ended
			})
		}
	}
}

// TestUnfinishedHasNoAddress closes and resets sockets, whose errors contain addresses and ports.
func TestUnfinishedHasNoAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for sent, want := range map[string]error{"": errSilent, "\x16\x03\x01": errEnded} {
		for _, linger := range []int{-1, 0} { // 0 resets the connection
			theirs, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			ours, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(theirs, sent)
			time.AfterFunc(50*time.Millisecond, func() {
				theirs.(*net.TCPConn).SetLinger(linger)
				theirs.Close()
			})
			if _, err := Read(ours); !errors.Is(err, want) {
				t.Errorf("after %q: %v, want %v", sent, err, want)
			}
			ours.Close()
		}
	}
	if _, err := Read(sent(t, []byte("SSH-2.0-x\r\n"), 100)); err == nil || Unfinished(err) || !strings.HasPrefix(err.Error(), "no TLS: ") {
		t.Errorf("another protocol: %v", err)
	}
}
