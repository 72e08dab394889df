package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/pending"
)

// FuzzRequests sends any bytes as requests. Only those for the host of the connection may be passed on.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: files.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "GET http://evil.test/ HTTP/1.1\r\nHost: files.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: files.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"CONNECT evil.test:80 HTTP/1.1\r\nHost: files.test\r\n\r\n", "GET / HTTP/1.1\nHost:\tfiles.test:80\n\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	fuzzRequests(f, &Policy{Allow: mustParse(f, "files.test")}, 80, func(t *testing.T, r *http.Request) {
		name, err := Canonical(strings.TrimSuffix(r.Host, ":80"))
		if err != nil || name != "files.test" || r.Method == http.MethodConnect || r.URL.Host != "" || r.ProtoMajor != 1 {
			t.Errorf("passed on: %q %q %q %s", r.Method, r.Host, r.RequestURI, r.Proto)
		}
	})
}

// fuzzRequests sends any bytes as requests to files.test, with one rule. check is called with each request that is passed on.
func fuzzRequests(f *testing.F, policy *Policy, port uint16, check func(*testing.T, *http.Request)) {
	e := &Engine{journal: pending.New(time.Now), dirty: make(chan struct{}, 1)}
	e.policy.Store(policy)
	e.credentials.Set(map[string]string{"api": realKey})
	to := netip.AddrPortFrom(netip.MustParseAddr("198.18.0.1"), port)
	f.Fuzz(func(t *testing.T, content []byte) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.Write(content)
			theirs.Close()
		}()
		p := &requests{engine: e, flow: &flow{name: "files.test", proto: control.ProtoHTTP, to: to}, port: fmt.Sprintf(":%d", port)}
		serveRequests(context.Background(), ours, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.journal.Written(1, true)
			p.serve(w, r, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { check(t, r) }))
		}))
	})
}

// wantAnswers sends text, and compares the statuses of the answers. It returns the text of the last one.
func wantAnswers(t *testing.T, c net.Conn, name, sent string, statuses []int) (last string) {
	t.Helper()
	defer c.Close()
	go io.WriteString(c, sent)
	r := bufio.NewReader(c)
	for i, want := range statuses {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Errorf("%s, answer %d: %v", name, i+1, err)
			return ""
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s, answer %d: %s, %q", name, i+1, answer.Status, text)
		}
		last = string(text)
	}
	return last
}
