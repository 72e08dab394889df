package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/authority"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/frames"
	"github.com/git-airlock/git-airlock/prison/egress/share"
	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// apartEnv makes TestEngineApart carry packets. Its value is a folder with the certificates of the servers.
const apartEnv = "TEST_ENGINE_APART"

// apartWire describes the interface of an engine in a process of its own.
func apartWire(fd int) Wire {
	return Wire{FD: fd, MTU: 16 << 10, Inside: inside, Gateway: gateway, Resolver: resolves, Bits: 24, MAC: [6]byte{2, 0, 0, 0, 0, 1}}
}

// portWorld connects to one port of this machine.
type portWorld struct {
	fakeWorld
	address string
}

func (w *portWorld) Connect(ctx context.Context, _ Target) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", w.address)
	if err != nil {
		return nil, err
	}
	return elsewhere{c.(*net.TCPConn)}, nil
}

// TestEngineApart is the process of a network, for a test that measures its memory.
func TestEngineApart(t *testing.T) {
	dir := os.Getenv(apartEnv)
	if dir == "" {
		t.Skip("is run by other tests")
	}
	roots, err := os.ReadFile(filepath.Join(dir, "roots"))
	if err != nil {
		t.Fatal(err)
	}
	if err := walls.LimitNetwork(); err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(Settings{
		Wire: apartWire(3), Names: &memory{}, World: &portWorld{address: os.Getenv(apartEnv + "_SERVER")},
		First: writable(rules(1, "files.test", "!DELETE files.test", "opaque.test")),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.roots = func() (*x509.CertPool, error) { return poolOf(string(roots)), nil }
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte(e.trusted.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "trusted")); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, os.Stdin) // until the test ends
}

// apart is an engine in a process of its own, and the interface inside.
type apart struct {
	stack   *stack.Stack
	trusted *x509.CertPool
	pid     int
}

// startApart starts an engine before a TLS server that answers files.test by HTTP with h, and opaque.test with raw.
func startApart(t *testing.T, h http.HandlerFunc, raw func(net.Conn)) *apart {
	t.Helper()
	dir := t.TempDir()
	var outside authority.Set
	if err := outside.Update([]string{"test"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(i *tls.ClientHelloInfo) (*tls.Certificate, error) { return outside.Leaf(i.ServerName, time.Now()) }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveApart(t.Context(), c, secure, h, raw)
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "roots"), []byte(outside.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20) // packets that get lost are sent again
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestEngineApart$")
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=192MiB", apartEnv+"="+dir, apartEnv+"_SERVER="+l.Addr().String())
	cmd.ExtraFiles, cmd.Stderr, cmd.Stdout = []*os.File{os.NewFile(uintptr(fds[0]), "theirs")}, os.Stderr, os.Stderr
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()
	t.Cleanup(func() { life.Close(); cmd.Wait() })
	var trusted []byte
	for begun := time.Now(); time.Since(begun) < patience && trusted == nil; time.Sleep(5 * time.Millisecond) {
		trusted, _ = os.ReadFile(filepath.Join(dir, "trusted"))
	}
	link, err := frames.New(fds[1], apartWire(0).MTU, "\x02\x00\x00\x00\x00\x02")
	if err != nil {
		t.Fatal(err)
	}
	a := newInside(t, link)
	small := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: 16 << 10, Max: 16 << 10}
	if err := a.SetTransportProtocolOption(tcp.ProtocolNumber, &small); err != nil {
		t.Fatal(err)
	}
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid)); err != nil || !strings.Contains(string(limits), "Max data size             536870912") {
		t.Errorf("%v, %s", err, limits)
	}
	return &apart{stack: a, trusted: poolOf(string(trusted)), pid: cmd.Process.Pid}
}

// serveApart serves one connection of the world.
func serveApart(ctx context.Context, c net.Conn, secure *tls.Config, h http.HandlerFunc, raw func(net.Conn)) {
	defer c.Close()
	b := bufio.NewReader(c)
	hello, err := b.Peek(200)
	if err == nil && strings.Contains(string(hello), "opaque.test") {
		raw(c)
		return
	}
	serveRequests(ctx, peeked{c, b}, secure, h) // the client sees errors
}

// peeked is a connection of which some bytes were read.
type peeked struct {
	net.Conn
	r io.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// megabytes returns a figure of the process: VmRSS, VmHWM or VmData.
func (a *apart) megabytes(t *testing.T, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	kilobytes, err := strconv.Atoi(strings.TrimSpace(rest[:strings.Index(rest, "kB")]))
	if err != nil {
		t.Fatal("the process has ended")
	}
	return kilobytes >> 10
}

// client returns a client with a connection of its own, which takes few bytes of an answer that nobody reads.
func (a *apart) client(t *testing.T) *http.Client {
	c := mustDial(t, a.stack, "files.test", 443)
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{RootCAs: a.trusted},
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1, MaxReceiveBufferPerConnection: 64 << 10},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return c, nil
		},
	}}
}

// steady waits until the memory of the process grows no more, and returns its maximum.
func (a *apart) steady(t *testing.T) int {
	t.Helper()
	last := 0
	for range 60 {
		time.Sleep(time.Second)
		now := a.megabytes(t, "VmHWM")
		t.Logf("RSS %d MB, at most %d MB, data %d MB", a.megabytes(t, "VmRSS"), now, a.megabytes(t, "VmData"))
		if now-last <= 1 {
			return now
		}
		last = now
	}
	return last
}

// pour writes without end.
func pour(w http.ResponseWriter, r *http.Request) {
	for b := make([]byte, 16<<10); r.Context().Err() == nil; {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// endless has no end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestMemoryIsBounded opens as many connections as there may be, and requests over them, whose bytes nobody reads.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test (scripts/test --everywhere)")
	}
	const most = 256
	for _, c := range []struct {
		name           string
		flows, streams int
		h              http.HandlerFunc
		body           func() io.Reader
	}{
		{"few connections, many answers", 8, 60, pour, func() io.Reader { return nil }},
		{"answers", 500, 2, pour, func() io.Reader { return nil }},
		{"both", 500, 1, pour, func() io.Reader { return endless{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := startApart(t, c.h, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			refused := make(chan int, c.flows*c.streams)
			busy := make(chan struct{}, 32)
			for range c.flows {
				client := a.client(t)
				for range c.streams {
					busy <- struct{}{}
					go func() {
						defer func() { <-busy }()
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://files.test/x", c.body())
						if err != nil {
							panic(err)
						}
						answer, err := client.Do(r) //nolint:bodyclose // nobody reads it
						switch {
						case err != nil:
							refused <- 0
						case answer.StatusCode != 200:
							refused <- answer.StatusCode
						}
					}()
				}
			}
			got := a.steady(t)
			t.Logf("%d refused", len(refused))
			if got > most {
				t.Errorf("%d MB", got)
			}
		})
	}
	t.Run("opaque", func(t *testing.T) {
		a := startApart(t, nil, func(c net.Conn) {
			for b := make([]byte, 64<<10); ; {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		})
		for range 500 {
			c, err := dialName(t, a.stack, "opaque.test", 443)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				tls.Client(c, &tls.Config{ServerName: "opaque.test"}).Handshake() // it sends a hello
			}()
		}
		if got := a.steady(t); got > most {
			t.Errorf("%d MB", got)
		}
	})
}

// TestTooManyRequests sends a request while as many as possible are on their way.
func TestTooManyRequests(t *testing.T) {
	e, s := newSeen(t, tell, "files.test", "!DELETE files.test")
	var places []share.Place
	for p := e.shares.Begin(); !p.Refused; p = e.shares.Begin() {
		places = append(places, p)
	}
	client := clientOf(t, e, s)
	if status, text := send(t, client, "POST", "https://files.test/x"); status != 503 || !strings.Contains(text, "too many requests at a time") || strings.Contains(text, "net allow") {
		t.Errorf("%d, %q", status, text)
	}
	lastRecord(t, e, func(r control.Record) bool {
		return r.Kind == control.KindRefusal && r.Final() && strings.Contains(r.Reason, "too many requests")
	})
	for _, p := range places {
		e.shares.End(p)
	}
	if status, text := send(t, client, "POST", "https://files.test/x"); status != 200 {
		t.Errorf("%d, %q", status, text)
	}
}
