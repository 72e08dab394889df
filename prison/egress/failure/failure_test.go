package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/credential"
	"github.com/git-airlock/git-airlock/prison/egress/upstream"
)

// marker stands for words that no program inside may read.
const marker = "MARKER"

// address is an address of this machine, of the proxy or of the server.
type address struct{}

func (address) Network() string { return marker }
func (address) String() string  { return marker }

// late is an error with a timeout.
type late struct{ error }

func (late) Timeout() bool   { return true }
func (late) Temporary() bool { return true }

// operation returns an error of a socket, with the marker in each field.
func operation(op string, err error) error {
	return &net.OpError{Op: op, Net: marker, Source: address{}, Addr: address{}, Err: err}
}

// throughProxy returns the error of a connection through a proxy that does not exist.
func throughProxy(t *testing.T) error {
	t.Helper()
	p, password, err := upstream.Parse("http://" + marker + ":" + marker + "@127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = upstream.Way{Proxy: p, Password: password}.Dial(t.Context(), "files.test:443")
	return err
}

// TestNoMarkerInside has the errors of connections, of proxies, of TLS and of HTTP, each with the marker in every field, as they are, with
// words of a caller, together with another error, and as errors of a connection that could not be made.
func TestNoMarkerInside(t *testing.T) {
	text := errors.New(marker)
	for name, c := range map[string]struct {
		err  error
		want kind // without Dial
		dial kind
	}{
		"a connection":     {operation("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), unconnected, unconnected},
		"a reset":          {operation("read", os.NewSyscallError("read", syscall.ECONNRESET)), closed, unconnected},
		"a broken pipe":    {operation("write", os.NewSyscallError("write", syscall.EPIPE)), closed, unconnected},
		"a closed socket":  {operation("read", net.ErrClosed), closed, unconnected},
		"a slow socket":    {operation("read", os.ErrDeadlineExceeded), silent, unconnected},
		"any operation":    {operation(marker, text), unconnected, unconnected},
		"socks":            {operation("socks connect", text), unconnected, unconnected},
		"a look-up":        {&net.DNSError{Err: marker, Name: marker, Server: marker, UnwrapErr: text}, unreadable, unknownName},
		"a slow look-up":   {&net.DNSError{Err: marker, Name: marker, Server: marker, IsTimeout: true}, silent, unknownName},
		"an address":       {&net.AddrError{Err: marker, Addr: marker}, unreadable, unconnected},
		"an alert":         {operation("remote error", tls.AlertError(70)), insecure, unconnected},
		"no TLS":           {tls.RecordHeaderError{Msg: marker, RecordHeader: [5]byte{'M', 'A', 'R', 'K', 'E'}}, insecure, unconnected},
		"another name":     {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{marker}}, Host: marker}}, untrusted, unconnected},
		"no authority":     {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, untrusted, unconnected},
		"an invalid one":   {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Detail: marker}}, untrusted, unconnected},
		"a URL":            {&url.Error{Op: marker, URL: marker, Err: text}, unreadable, unconnected},
		"a file":           {&fs.PathError{Op: marker, Path: marker, Err: text}, unreadable, unconnected},
		"a header":         {fmt.Errorf("net/http: HTTP/1.x transport connection broken: malformed HTTP response %q", marker), unreadable, unconnected},
		"no answer":        {fmt.Errorf("%s: %w", marker, io.EOF), closed, unconnected},
		"half an answer":   {fmt.Errorf("%s: %w", marker, io.ErrUnexpectedEOF), closed, unconnected},
		"no patience":      {fmt.Errorf("%s: %w", marker, context.DeadlineExceeded), silent, unconnected},
		"a slow server":    {late{text}, silent, unconnected},
		"a change":         {fmt.Errorf("%s: %w", marker, context.Canceled), ended, ended},
		"an echo":          {fmt.Errorf("%s: %w", marker, credential.ErrEcho), echo, unconnected},
		"a coded answer":   {fmt.Errorf("%s: %w", marker, credential.ErrUnsearchable), unsearchable, unconnected},
		"no second time":   {fmt.Errorf("%s: %w", marker, credential.ErrUnanswered), unanswered, unconnected},
		"a proxy":          {throughProxy(t), unconnected, viaProxy},
		"any error at all": {text, unreadable, unconnected},
	} {
		for form, err := range map[string]error{"as it is": c.err, "wrapped": fmt.Errorf("%s: %w", marker, c.err), "joined": errors.Join(text, c.err)} {
			checkInside(t, name+", "+form, err, c.want)
			checkInside(t, name+", dialed, "+form, &Dial{err}, c.dial)
			checkInside(t, name+", dialed and wrapped, "+form, fmt.Errorf("%s: %w", marker, &Dial{err}), c.dial)
		}
	}
}

// checkInside compares what a program inside reads of an error, and what a record may have of it.
func checkInside(t *testing.T, name string, err error, want kind) {
	t.Helper()
	got := Of(err)
	if text := got.String(); !slices.Contains(words[:], text) || strings.Contains(text, marker) || got.of != want {
		t.Errorf("%s: %q inside; want %q", name, text, words[want])
	}
	switch full, guarded := Reason(err, false), Reason(err, true); {
	case (want == unconnected || want == unknownName) && !strings.Contains(full, err.Error()):
		t.Errorf("%s: the ledger has %q of %q", name, full, err)
	case (want == closed || want == silent) && strings.Contains(full, marker+"->"):
		t.Errorf("%s: the ledger has %q, with the address of this machine", name, full)
	case want == unreadable && !strings.HasPrefix(full, got.String()):
		t.Errorf("%s: the ledger has %q, want words of our own", name, full)
	case (want == unreadable || want == untrusted) && strings.Contains(guarded, marker), want == unreadable && strings.Contains(full, marker):
		t.Errorf("%s: the ledger has %q, which the server can choose", name, guarded)
	case full == "" || full == "EOF" || full == "context canceled":
		t.Errorf("%s: %q in the ledger", name, full)
	}
}

// TestUnreadableAnswers has answers of servers that net/http cannot read. No words of its errors are in a record.
func TestUnreadableAnswers(t *testing.T) {
	const unread = "the server has sent no answer that can be read"
	for _, answer := range []string{
		"HTTP/1.1 abc " + marker + "\r\n\r\n",
		marker + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + marker + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + marker + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("M: "+marker+"\r\n", 1<<10),
	} {
		near, far := net.Pipe()
		go func() {
			io.CopyN(io.Discard, far, 20)
			io.WriteString(far, answer)
			far.Close()
		}()
		transport := http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }, MaxResponseHeaderBytes: 1 << 10}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://files.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		got, err := transport.RoundTrip(request)
		if err == nil {
			got.Body.Close()
			t.Fatalf("%.40q is an answer", answer)
		}
		if reason := Reason(err, false); reason != unread || Reason(err, true) != unread {
			t.Errorf("%.40q: %q in the ledger, want %q (%v)", answer, reason, unread, err)
		}
		near.Close()
	}
}

// TestStreamError compares the error of HTTP/2 with that of net/http.
func TestStreamError(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Transport.RoundTrip(request)
	if err == nil {
		got.Body.Close()
		t.Fatal("an answer of a handler that has ended its request")
	}
	if reason := Reason(err, false); reason != "the server has sent no answer that can be read: the server has sent error 2 of HTTP/2" {
		t.Errorf("%q in the ledger for %v", reason, err)
	}
}
