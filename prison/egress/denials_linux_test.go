package egress

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestDenialsHold writes denied requests as some servers read them, too. None may reach the server.
func TestDenialsHold(t *testing.T) {
	e, s := newSeen(t, tell, "files.test", "!DELETE files.test", "!files.test/admin/**")
	for _, request := range []string{
		"DELETE /x", "delete /x", "Delete /x", "get /x", "GET /admin/x", "GET /Admin/x", "GET /admin;a/x", "GET /admin;/x", "GET /admin./x", "GET /admin%20/x", "GET /admin%2e/x",
		"GET /x/.%20./admin/x", "GET /;/admin/x", "GET /x/..%20/admin/x", "GET /admin", "GET /%41dmin/x", "TRACE /x",
	} {
		wantAnswers(t, speak(t, e, s, "files.test"), request, request+" HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403})
		wantAnswers(t, mustDial(t, s, "files.test", 80), request+", without TLS", request+" HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{403})
	}
	for _, request := range []string{"GET /", "POST /administrator", "M-SEARCH /x;a=b", "GET /x/admin/y"} {
		wantAnswers(t, speak(t, e, s, "files.test"), request, request+" HTTP/1.1\r\nHost: files.test\r\n\r\n", []int{200})
	}
	for destination, want := range map[string]int{"https://files.test/Admin/x": 403, "/admin/x": 403, "/x/../admin/y": 403, "/y\r\nDestination: /admin/x": 403, "https://files.test/y": 200} {
		sent := "MOVE /x HTTP/1.1\r\nHost: files.test\r\nDestination: " + destination + "\r\n\r\n"
		wantAnswers(t, speak(t, e, s, "files.test"), "move to "+destination, sent, []int{want})
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRefusal && r.Method == "delete" })
	if r.Reason != control.ReasonFinal+"the method is not in upper case" {
		t.Errorf("%+v", r)
	}
}

// TestOverridesAreRemoved sends headers and trailers by which servers replace what was decided about.
func TestOverridesAreRemoved(t *testing.T) {
	e, s := newSeen(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Header, r.Trailer)
	}, "files.test", "!DELETE files.test")
	for _, name := range []string{
		"X-HTTP-Method-Override", "X_http_method_override", "x.http-method_override", "X-Http-Method", "X-Original-Url", "X-Original-Uri", "x_original_uri", "X-Forwarded-Uri",
		"X-Rewrite-Url", "X-Forwarded-Method", "X_Forwarded_Host", "X-Host",
	} {
		sent := "POST /x HTTP/1.1\r\nHost: files.test\r\n" + name + ": evil\r\nTransfer-Encoding: chunked\r\nTrailer: " + name + "\r\n\r\n0\r\n" + name + ": evil\r\n\r\n"
		if text := wantAnswers(t, speak(t, e, s, "files.test"), name, sent, []int{200}); strings.Contains(text, "evil") {
			t.Errorf("%s: the server sees %s", name, text)
		}
	}
}

// TestForwardingIsKept sends headers of proxies and a trailer to a host that a rule allows as a whole, and the headers to one of which some
// requests are denied.
func TestForwardingIsKept(t *testing.T) {
	see := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Header["Forwarded"], r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Host"], r.Header["X-Forwarded-Proto"], r.Trailer)
	}
	serve := func(c net.Conn) { serveRequests(t.Context(), c, nil, http.HandlerFunc(see)) }
	_, s := newGuarded(t, &fakeWorld{serve: serve}, "whole.test", "some.test", "!DELETE some.test")
	for name, want := range map[string]string{"whole.test": "[for=a] [b c] [d.test] [https] map[X-Sum:[1]]", "some.test": "[] [b c] [] [https] map[]"} {
		sent := "POST /x HTTP/1.1\r\nHost: " + name + "\r\nForwarded: for=a\r\nX-Forwarded-For: b\r\nX-Forwarded-For: c\r\nX-Forwarded-Host: d.test\r\nX-Forwarded-Proto: https\r\n" +
			"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\ntext\r\n0\r\nX-Sum: 1\r\n\r\n"
		if text := wantAnswers(t, mustDial(t, s, name, 80), name, sent, []int{200}); text != want {
			t.Errorf("%s: the server sees %s; want %s", name, text, want)
		}
	}
}

// TestRequestsHaveOneForm sends names of the host and of headers that some servers take for others than this program does.
func TestRequestsHaveOneForm(t *testing.T) {
	e, s := newSeen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		delete(r.Header, "Content-Length")
		fmt.Fprintf(w, "%s %v %s", r.Host, r.Header, body)
	}, "files.test", "!DELETE files.test")
	for host, want := range map[string]string{
		"files.test": "files.test", "FILES.test.": "files.test", "files.test:443": "files.test:443", "files.test.:443": "files.test:443",
		"files.test\r\nTransfer_Encoding: chunked\r\nContent_length: 3\r\nX_Own: a": "files.test",
	} {
		sent := "POST /x HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
		got := wantAnswers(t, speak(t, e, s, "files.test"), host, sent, []int{200})
		own := "map[]"
		if strings.Contains(host, "Own") {
			own = "map[X_own:[a]]"
		}
		if got != want+" "+own+" 0\r\n\r\n" {
			t.Errorf("%s: the server sees %q", host, got)
		}
	}
	// The same over HTTP/2.
	r, err := http.NewRequest("GET", "https://files.test/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "FILES.test."
	answer, err := clientOf(t, e, s).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); !strings.HasPrefix(string(text), "files.test map[") {
		t.Errorf("the server sees %q", text)
	}
}

// TestAnswersSayWhatHelps reads the answers to requests that no rule would allow, that a rule would allow, that a rule denies, and that are refused
// during a lockdown. Only those that a rule would allow name one, which is about the host of the connection.
func TestAnswersSayWhatHelps(t *testing.T) {
	e, s := newCredentialed(t, show)
	const end = "\r\nConnection: close\r\n\r\n"
	for _, c := range []struct{ to, sent, want string }{
		{"paths.test", "GET http://paths.test/ HTTP/1.1\r\nHost: paths.test" + end, ""}, {"paths.test", "GET / HTTP/1.1\r\nHost: paths.test:8080" + end, ""},
		{"paths.test", "GET / HTTP/1.0\r\n\r\n", ""}, {"paths.test", "GET / HTTP/1.1\r\nHost: 198.18.0.6" + end, ""},
		{"paths.test", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""}, {"paths.test", "TRACE / HTTP/1.1\r\nHost: paths.test" + end, ""},
		{"api.test", "GET / HTTP/1.1\r\nHost: api.test" + end, ""}, {"base.test", "GET /v1/x HTTP/1.1\r\nHost: base.test\r\nX-Api-Key: foreign" + end, ""},
		{"base.test", "GET //x HTTP/1.1\r\nHost: base.test" + end, ""}, {"base.test", "get /v1/x HTTP/1.1\r\nHost: base.test" + end, ""},
		{"paths.test", "GET //x HTTP/1.1\r\nHost: paths.test" + end, "net allow paths.test\n"}, {"paths.test", "get /x HTTP/1.1\r\nHost: paths.test" + end, "net allow paths.test\n"},
		{"paths.test", "POST /x HTTP/1.1\r\nHost: paths.test" + end, "net allow 'POST paths.test/x'\n"}, {"paths.test", "POST /a/../b HTTP/1.1\r\nHost: paths.test:80" + end, "net allow paths.test\n"},
		{"paths.test", "POST /';x;' HTTP/1.1\r\nHost: paths.test" + end, "net allow 'POST paths.test/%27;x;%27'\n"},
		{"paths.test", "M-SEARCH /v*/x HTTP/1.1\r\nHost: paths.test" + end, "net allow 'M-SEARCH paths.test/v%2A/x'\n"}, {"paths.test", "-X /x HTTP/1.1\r\nHost: paths.test" + end, "net allow 'paths.test/x'\n"},
		{"evil.test", "GET / HTTP/1.1\r\nHost: evil.test:8080" + end, "net allow evil.test\n"}, {"evil.test", "GET / HTTP/1.0\r\n\r\n", "net allow evil.test\n"},
	} {
		text := talk(t, mustDial(t, s, c.to, 80), c.sent)
		if !strings.HasPrefix(text, "HTTP/1.") || !strings.Contains(text, " 403 ") || !strings.HasSuffix(text, c.want) || strings.Contains(text, "net allow") != (c.want != "") {
			t.Errorf("%q: %q; want %q at the end", c.sent, text, c.want)
		}
		method, _, _ := strings.Cut(c.sent, " ")
		lastRecord(t, e, func(r control.Record) bool {
			return r.Kind == control.KindRefusal && (r.Name == c.to) && (r.Method == method || r.Method == "") && r.Final() == (c.want == "")
		})
	}
	locked := withCredentials(3, "paths.test")
	locked.Lockdown = true
	e.obey(control.Order{Rules: &locked})
	if text := talk(t, mustDial(t, s, "paths.test", 80), "GET / HTTP/1.1\r\nHost: paths.test"+end); !strings.HasSuffix(text, "net unlock\n") || strings.Contains(text, "net allow") {
		t.Errorf("%q", text)
	}
	for i, denial := range []string{"!paths.test/x", "!paths.test"} { // a permission would not help
		e.obey(control.Order{Rules: new(withCredentials(uint64(4+i), "GET paths.test", denial))})
		if text := talk(t, mustDial(t, s, "paths.test", 80), "GET /x HTTP/1.1\r\nHost: paths.test"+end); !strings.HasSuffix(text, "net explain\n") || strings.Contains(text, "net allow") {
			t.Errorf("%s: %q", denial, text)
		}
	}
}

// TestNoOtherProtocol asks for upgrades to WebSocket, to HTTP/2, whose requests no rule would see, and to other protocols.
func TestNoOtherProtocol(t *testing.T) {
	e, s := newSeen(t, func(w http.ResponseWriter, r *http.Request) {
		if upgrade := r.Header.Get("Upgrade"); upgrade != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", upgrade)
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	}, "files.test", "!DELETE files.test")
	for upgrade, want := range map[string]int{
		"websocket": 101, "WebSocket": 101, "h2": 403, "h2c": 403, "HTTP/2.0": 403, "TLS/1.2": 200, "SPDY/3.1": 200, "websocket, SPDY/3.1": 200, "websocket\r\nUpgrade: SPDY/3.1": 200,
	} {
		sent := "GET /x HTTP/1.1\r\nHost: files.test\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"
		wantAnswers(t, speak(t, e, s, "files.test"), upgrade, sent, []int{want})
	}
}
