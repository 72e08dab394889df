package egress

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	realKey            = "sk-real-0123456789abcdefghij"
	placeholder        = "sk-none-9876543210zyxwvutsrq"
	foreignPlaceholder = "sk-else-aaaabbbbccccddddeeee"
	basePlaceholder    = "sk-base-ffffgggghhhhiiiijjjj"
)

// withCredentials returns rules with a credential for some requests to api.test, one for another server, and one without a value.
func withCredentials(generation uint64, texts ...string) control.Rules {
	r := rules(generation, texts...)
	of := func(name, rule, placeholder string, limit int) control.Credential {
		return control.Credential{Name: name, Rules: []string{rule}, Header: "Authorization", Format: "Bearer %s", Placeholder: placeholder, Limit: limit}
	}
	r.Credentials = []control.Credential{
		of("api", "GET,POST api.test/v1/**", placeholder, 0), of("other", "other.test", foreignPlaceholder, 0), of("limited", "limited.test", "sk-limited-0000000000000000", 2),
		of("unknown", "unknown.test", "sk-unknown-0000000000000000", 0),
	}
	base := of("base", "GET,POST base.test/v1/**", basePlaceholder, 0)
	base.Base = true
	r.Credentials = append(r.Credentials, base)
	return r
}

// newCredentialed returns an engine with these credentials before servers that answer with h.
func newCredentialed(t testing.TB, h http.HandlerFunc) (*Engine, *stack.Stack) {
	t.Helper()
	all := []string{"api.test", "other.test", "limited.test", "unknown.test", "base.test:443", "GET paths.test"}
	e, s := newSeen(t, h, all...)
	e.obey(control.Order{Rules: new(withCredentials(2, all...)), Values: map[string]string{"api": realKey, "base": realKey, "other": "sk-real-for-the-other", "limited": realKey + "-l"}})
	if failed := e.state().Error; failed != "" {
		t.Fatal(failed)
	}
	return e, s
}

// show answers with what a server sees of a request, in which the value is spelled so that no answer is cut.
func show(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	seen := strings.ReplaceAll(fmt.Sprint(r.Header["Authorization"], r.Header["X-Api-Key"], r.Header["Cookie"], r.Trailer), realKey, "REAL")
	fmt.Fprint(w, seen, r.Header["Accept-Encoding"], r.Header["Range"], r.URL.RawQuery)
}

// send sends a request and returns the status and the content of the answer.
func send(t testing.TB, c *http.Client, method, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, string(text)
	}
	return answer.StatusCode, string(text)
}

// TestCredentialsAreReplaced sends requests over HTTP/2 with and without placeholders.
func TestCredentialsAreReplaced(t *testing.T) {
	e, s := newCredentialed(t, show)
	client := clientOf(t, e, s)
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+placeholder))
	const whole = "[Bearer REAL] [] [] map[][identity] []"
	for i, c := range []struct {
		url, header string
		status      int
		want        string
	}{
		{"api.test/v1/x?a=b", "Authorization: Bearer " + placeholder, 200, whole + "a=b"}, {"api.test/v1/x", "X-Api-Key: " + placeholder, 200, whole}, {"api.test/v1/x", basic, 200, whole},
		{"api.test/v1/x", "Accept: */*", 200, "[] [] [] map[]"}, {"api.test/x", "Cookie: own=1", 200, "[] [] [] map[]"}, {"paths.test/", "X-Api-Key: foreign", 200, "[foreign]"},

		{"api.test/v1/x", "Authorization: Bearer foreign", 403, "not this prison's"}, {"api.test/x", "X-Api-Key: foreign", 403, "not this prison's"},
		{"api.test/v1/x?key=foreign", "Accept: */*", 403, "query"}, {"api.test/x", "Authorization: Bearer " + placeholder, 403, "not for this request"},
		{"api.test/v1/x", "Authorization: Bearer " + foreignPlaceholder, 403, "not for this request"}, {"paths.test/", "Authorization: Bearer " + placeholder, 403, "not for this request"},
		{"unknown.test/", "Authorization: Bearer sk-unknown-0000000000000000", 502, "no value"},
		{"limited.test/", "Authorization: Bearer sk-limited-0000000000000000", 200, "REAL-l"}, {"limited.test/", "Authorization: Bearer sk-limited-0000000000000000", 200, "REAL-l"},
		{"limited.test/", "Authorization: Bearer sk-limited-0000000000000000", 429, "used up"}, {"limited.test/", "Accept: */*", 200, "[]"},
	} {
		method := "POST"
		if strings.HasPrefix(c.url, "paths") {
			method = "GET"
		}
		if status, text := send(t, client, method, "https://"+c.url, c.header); status != c.status || !strings.Contains(text, c.want) || strings.Contains(text, placeholder) {
			t.Errorf("%d, %s %s: %d, %q; want %d, %q", i, c.url, c.header, status, text, c.status, c.want)
		}
	}
	// A request that copies or moves (WebDAV) needs a credential for both paths.
	for target, want := range map[string]int{"https://api.test/other/b": 403, "/v1/../b": 403, "/v1/b": 200} {
		if status, text := send(t, client, "POST", "https://api.test/v1/x", "Authorization: Bearer "+placeholder, "Destination: "+target); status != want {
			t.Errorf("destination %s: %d, %q; want %d", target, status, text, want)
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRequest && r.Credential == "api" })
	if r.Name != "api.test" || r.Path != "/v1/x" {
		t.Errorf("%+v", r)
	}
	uses := e.state().Credentials
	if len(uses) != 5 || !uses[0].Known || uses[0].Requests != 4 || uses[0].Last.IsZero() || uses[3].Known {
		t.Errorf("%+v", uses)
	}
	// The port without TLS is closed for such a host.
	text := talk(t, mustDial(t, s, "api.test", 80), "GET /v1/x HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer "+placeholder+"\r\n\r\n")
	if !strings.HasPrefix(text, "HTTP/1.1 403") || !strings.Contains(text, "over TLS") {
		t.Errorf("%q", text)
	}
}

// TestUnrecordedRequestIsNotCounted refuses requests because the ledger cannot be written, which uses up no limit.
func TestUnrecordedRequestIsNotCounted(t *testing.T) {
	e, s := newCredentialed(t, show)
	client := clientOf(t, e, s)
	ask := func() int {
		status, _ := send(t, client, "GET", "https://limited.test/", "Authorization: Bearer sk-limited-0000000000000000")
		return status
	}
	if status := ask(); status != 200 {
		t.Fatal(status)
	}
	e.journal.Written(0, false)
	for range 3 {
		if status := ask(); status == 200 {
			t.Error("a request was passed on without a record")
		}
	}
	e.journal.Written(0, true)
	if status := ask(); status != 200 {
		t.Errorf("the second request of two: %d", status)
	}
	if status := ask(); status != 429 {
		t.Errorf("the third request of two: %d", status)
	}
}

// talk sends bytes and returns all bytes that come back.
func talk(t testing.TB, c io.ReadWriteCloser, sent string) string {
	t.Helper()
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(c)
	return string(text)
}

// TestRawCredentials sends requests that an HTTP library does not send, inside TLS and to a service that is reached without TLS inside. The
// server, which speaks TLS alone, must see each request as it was decided about.
func TestRawCredentials(t *testing.T) {
	e, s := newCredentialed(t, show)
	const first, end = "GET /v1/x HTTP/1.1\r\nHost: api.test\r\n", "Connection: close\r\n\r\n"
	auth := "Authorization: Bearer " + placeholder + "\r\n"
	next := "GET /v1/y HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer foreign\r\n" + end
	for name, c := range map[string]struct {
		sent string
		want []string // of the answers
	}{
		"one":             {first + auth + end, []string{"200", "[Bearer REAL] [] []"}},
		"folded":          {first + "Authorization: Bearer\r\n " + placeholder + "\r\n" + end, []string{"200", "[Bearer REAL]"}},
		"folded, two":     {first + "Authorization: Bearer " + placeholder + "\r\n foreign\r\n" + end, []string{"403"}},
		"twice":           {first + auth + auth + end, []string{"200", "[Bearer REAL] []"}},
		"twice, foreign":  {first + auth + "authorization: Bearer foreign\r\n" + end, []string{"403"}},
		"space in a name": {first + "Authorization : Bearer foreign\r\n" + end, []string{"400"}},
		"hop by hop":      {first + auth + "Connection: Authorization, close\r\n\r\n", []string{"200", "[Bearer REAL]"}},
		"hop by hop, not": {first + "X-Api-Key: foreign\r\nConnection: X-Api-Key, close\r\n\r\n", []string{"403"}},
		"range":           {first + auth + "Range: bytes=0-3\r\nAccept-Encoding: gzip\r\n" + end, []string{"200", "[identity] []"}},
		"chunked": {"POST /v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + "Transfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n\r\n4;x=y\r\ntext\r\n0\r\nX-Api-Key: foreign\r\n\r\n" + next,
			[]string{"200", "[Bearer REAL] [] [] map[]", "403"}},
		"smuggled":     {"POST /v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next, []string{"200", "403"}},
		"two lengths":  {"POST /v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + next, []string{"400"}},
		"pipelined":    {first + auth + "\r\n" + next, []string{"200", "403"}},
		"other host":   {"GET /v1/x HTTP/1.1\r\nHost: other.test\r\n" + auth + end, []string{"403"}},
		"trace":        {"TRACE /v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + end, []string{"403"}},
		"no path":      {"GET /v1/../v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + end, []string{"403"}},
		"another verb": {"DELETE /v1/x HTTP/1.1\r\nHost: api.test\r\n" + auth + end, []string{"403"}},
	} {
		t.Run(name, func(t *testing.T) {
			answersWith(t, talk(t, speak(t, e, s, "api.test"), c.sent), c.want)
		})
		t.Run(name+", without TLS", func(t *testing.T) {
			sent := strings.NewReplacer("api.test", "base.test", placeholder, basePlaceholder).Replace(c.sent)
			answersWith(t, talk(t, mustDial(t, s, "base.test", 80), sent), c.want)
		})
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRequest && r.Credential == "base" })
	if r.Name != "base.test" || r.Port != 443 || r.Seen != control.SeenRequest {
		t.Errorf("%+v", r)
	}
}

// answersWith checks that answers have these parts in this order, that they have no key, and that no more of them have the status 200.
func answersWith(t *testing.T, got string, want []string) {
	t.Helper()
	rest := got
	for _, part := range want {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Errorf("%q lacks %q", got, part)
			break
		}
		rest = rest[i+len(part):]
	}
	if strings.Contains(got, "foreign") || strings.Contains(got, realKey) || strings.Count(got, "HTTP/1.1 200") > strings.Count(strings.Join(want, " "), "200") {
		t.Errorf("%q", got)
	}
}

// TestEchoedCredentials has a server send the value back in many places.
func TestEchoedCredentials(t *testing.T) {
	e, s := newCredentialed(t, func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch r.URL.Path {
		case "/v1/header":
			w.Header().Set("Location", "/"+key)
		case "/v1/hint":
			w.Header().Set("Link", key)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		case "/v1/trailer":
			w.Header().Set("Trailer", "X-Key")
			defer w.Header().Set("X-Key", key)
		case "/v1/parts":
			io.WriteString(w, "the key is "+key[:9])
			http.NewResponseController(w).Flush()
			io.WriteString(w, key[9:])
		case "/v1/length":
			w.Header().Set("Content-Length", fmt.Sprint(len(key)+len("text")))
			io.WriteString(w, key)
		case "/v1/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			io.WriteString(compressed, key)
			compressed.Close()
			return
		case "/v1/part":
			w.WriteHeader(http.StatusPartialContent)
			io.WriteString(w, key[:len(key)-1])
		case "/v1/escaped":
			io.WriteString(w, `"sk\u002D`+key[3:])
		case "/v1/name":
			w.Header()[key] = []string{"x"}
		case "/v1/trailers":
			w.Header()["Trailer"] = []string{key}
			defer func() { w.Header()[key] = []string{"x"} }()
		case "/v1/401":
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, "text")
	})
	client := clientOf(t, e, s)
	var hints string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hints += fmt.Sprint(h); return nil }}
	for path, want := range map[string]int{"/v1/header": 502, "/v1/hint": 200, "/v1/trailer": 0, "/v1/parts": 0, "/v1/length": 0, "/v1/401": 401, "/v1/gzip": 502, "/v1/part": 502, "/v1/escaped": 0, "/v1/name": 502, "/v1/trailers": 502} {
		r, err := http.NewRequest("GET", "https://api.test"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
		r.Header.Set("Authorization", "Bearer "+placeholder)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.Header, answer.Trailer, string(text), hints); strings.Contains(got, realKey) || strings.Contains(got, realKey[:9]) {
			t.Errorf("%s: %s", path, got)
		}
		if want == 0 && err == nil || want != 0 && answer.StatusCode != want {
			t.Errorf("%s: %s, %v", path, answer.Status, err)
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindAlarm })
	if r.Credential != "api" || !strings.Contains(r.Reason, "an answer of api.test contained the value") {
		t.Errorf("%+v", r)
	}
	select {
	case name := <-e.stale:
		if name != "api" {
			t.Error(name)
		}
	default:
		t.Error("nobody hears about the 401")
	}
}

// TestEchoesWithoutKey has servers send a value back to requests that have no key, also to requests that get none, and as a part or compressed
// if the request asks for that.
func TestEchoesWithoutKey(t *testing.T) {
	e, s := newCredentialed(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Range") != "":
			w.WriteHeader(http.StatusPartialContent)
			io.WriteString(w, realKey[:20])
		case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			io.WriteString(compressed, realKey)
			compressed.Close()
		case strings.HasSuffix(r.URL.Path, "/hint"):
			w.Header().Set("Link", realKey)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		case strings.HasSuffix(r.URL.Path, "/header"):
			w.Header().Set("Location", "/"+realKey)
		case strings.HasSuffix(r.URL.Path, "/fine"):
			io.WriteString(w, realKey[:20])
		default:
			io.WriteString(w, "the key is "+realKey)
		}
	})
	ask := "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n"
	for _, c := range []struct{ path, header, want string }{
		{"/v1/x", "", "200"}, {"/elsewhere", "", "200"}, {"/v1/x", "Range: bytes=0-19\r\n", "200"}, {"/v1/x", "Accept-Encoding: gzip\r\n", "200"},
		{"/v1/header", "", "502"}, {"/v1/hint", "", "200"}, {"/v1/fine", "", realKey[:20]},
	} {
		for _, name := range []string{"api.test", "base.test"} {
			var near io.ReadWriteCloser
			if name == "api.test" {
				near = speak(t, e, s, name)
			} else {
				near = mustDial(t, s, name, 80)
			}
			got := talk(t, near, fmt.Sprintf(ask, c.path, name, c.header))
			near.Close()
			if !strings.Contains(got, c.want) || strings.Contains(got, realKey) || strings.Contains(got, realKey[:20]) != (c.want == realKey[:20]) {
				t.Errorf("%s%s, %q: %q; want %s", name, c.path, c.header, got, c.want)
			}
		}
	}
	r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindAlarm && r.Name == "api.test" })
	if r.Credential != "api" || !strings.Contains(r.Reason, "an answer of api.test contained the value of the credential api") {
		t.Errorf("%+v", r)
	}
}

// TestRequestIsSentOnce has a server close a connection in place of its second answer. net/http would send the request again. An upgrade makes it
// speak HTTP/1.
func TestRequestIsSentOnce(t *testing.T) {
	var asked atomic.Int64
	e, s := newCredentialed(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.URL.Path == "/v1/drop" {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				c.Close()
			}
		}
	})
	for _, method := range []string{"GET", "POST"} {
		asked.Store(0)
		c := speak(t, e, s, "api.test")
		r := bufio.NewReader(c)
		for _, x := range []struct {
			path string
			want int
		}{{"/v1/x", 200}, {"/v1/drop", 502}} {
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: api.test\r\nIdempotency-Key: 1\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer %s\r\n\r\n", method, x.path, placeholder)
			answer, err := http.ReadResponse(r, nil)
			if err != nil || answer.StatusCode != x.want {
				t.Fatal(method, x.path, answer, err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("%s: the server got %d requests of 2", method, n)
		}
	}
}

// TestServerIsNotQuoted has a server put the value where the errors of net/http quote it.
func TestServerIsNotQuoted(t *testing.T) {
	answers := map[string]string{
		"/v1/length": "HTTP/1.1 200 OK\r\nContent-Length: KEY\r\n\r\n", "/v1/coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: KEY\r\n\r\n", "/v1/status": "HTTP/1.1 KEY\r\n\r\n",
		"/v1/version": "KEY 200 OK\r\n\r\n", "/v1/line": "HTTP/1.1 200 OK\r\nKEY\r\n\r\n", "/v1/upgrade": "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: KEY\r\n\r\n",
	}
	e, s := newCredentialed(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		io.WriteString(c, strings.ReplaceAll(answers[r.URL.Path], "KEY", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		c.Close()
	})
	for path := range answers {
		sent := "GET " + path + " HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer " + placeholder + "\r\n\r\n"
		if text := wantAnswers(t, speak(t, e, s, "api.test"), path, sent, []int{502}); strings.Contains(text, realKey[:4]) || text == "" {
			t.Errorf("%s: %q", path, text)
		}
		r := lastRecord(t, e, func(r control.Record) bool { return r.Kind == control.KindRequest && r.Path == path })
		if strings.Contains(fmt.Sprint(r), realKey[:4]) || r.Reason == "" || r.Status != 502 {
			t.Errorf("%+v", r)
		}
	}
}

// TestCredentialInWebSocket opens another protocol with a credential.
func TestCredentialInWebSocket(t *testing.T) {
	e, s := newCredentialed(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Known: %v\r\n\r\n", r.Header.Get("Authorization") == "Bearer "+realKey)
		io.Copy(c, rw)
		c.Close()
	})
	c := speak(t, e, s, "api.test")
	io.WriteString(c, "GET /v1/ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer "+placeholder+"\r\n\r\n")
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("X-Known") != "true" {
		t.Fatal(answer, err)
	}
	defer answer.Body.Close()
	io.WriteString(c, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzCredentials sends any bytes as requests to a server with a credential. What is passed on has the value in its header, or no
// credential at all, and no placeholder in a header that carries credentials.
func FuzzCredentials(f *testing.F) {
	const first, end = "GET /pub/a HTTP/1.1\r\nHost: files.test\r\n", "\r\n\r\n"
	for _, seed := range []string{
		first + "Authorization: Bearer " + placeholder + end, first + "Authorization: Bearer\r\n " + placeholder + end, first + "x_api-key: " + placeholder + "\r\nCookie: a=b" + end,
		first + "Authorization: Bearer " + placeholder + "\r\nAuthorization: Basic Zm9yZWlnbjo=" + end, first + "X-Api-Key: foreign\r\nConnection: X-Api-Key" + end,
		"POST /pub/a HTTP/1.1\r\nHost: files.test\r\nAuthorization: Bearer " + placeholder + "\r\nTransfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n\r\n0\r\nX-Api-Key: foreign" + end,
	} {
		f.Add([]byte(seed))
	}
	policy, err := NewPolicy(control.Rules{Allow: []control.Rule{{Text: "files.test"}}, Credentials: []control.Credential{
		{Name: "api", Rules: []string{"files.test/pub/**"}, Header: "Authorization", Format: "Bearer %s", Placeholder: placeholder},
	}}, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	fuzzRequests(f, &policy, 443, func(t *testing.T, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		x := roundTripOf(r.Context())
		x.putCredential(r)
		want := ""
		if x.used != nil {
			want = "Bearer " + realKey
		}
		for name, values := range r.Header {
			text, plain := strings.Join(values, " "), strings.ToLower(strings.ReplaceAll(name, "_", "-"))
			if name == "Authorization" && text == want {
				continue
			}
			if plain == "authorization" || plain == "x-api-key" || plain == "cookie" || strings.Contains(text, realKey) {
				t.Errorf("passed on: %q: %q", name, text)
			}
		}
		if len(r.Trailer) > 0 || want != "" && r.Header.Get("Authorization") != want {
			t.Errorf("passed on: %q, %q", r.Trailer, r.Header)
		}
	})
}
