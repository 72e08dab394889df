package request

import (
	"bufio"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

// TestPath compares paths that have one meaning with their decoded form, and checks that the others are refused.
func TestPath(t *testing.T) {
	for raw, want := range map[string]string{
		"/": "/", "/a": "/a", "/a/": "/a/", "/a%20b": "/a b", "/%61": "/a", "/a..b/...c": "/a..b/...c", "/@scope/x;v=1": "/@scope/x;v=1", "/a+b": "/a+b", "/%c3%bc": "/ü",
	} {
		if got, err := Path(raw); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		"", "a", "*", "//", "/a//b", "//a", "/.", "/..", "/a/../b", "/a/.", "/a/..", "/%2e%2e/b", "/a/%2E./b", "/..;x/b", "/.;/b", "/...", "/..%20/b", "/%20/b", "/a/.%20;x", "/;x/b", "/a%fc", "/%c0%afb", "/a%2fb", "/a%2Fb", "/a%5cb", `/a\b`,
		"/%252e%252e/b", "/%25", "/a%00b", "/a\nb", "/a%0a", "/a b", "/a?b", "/a%3fb", "/a#b", "/a%23", "/a%3b", "/%", "/%1", "/%zz", "/ü", "/" + strings.Repeat("a", maxPath),
	} {
		if got, err := Path(raw); err == nil {
			t.Errorf("%q is %q", raw, got)
		}
	}
}

// TestSent compares the paths of typed addresses with those that net/http reads from requests.
func TestSent(t *testing.T) {
	for typed, want := range map[string]string{
		"/pub/x?q=1": "/pub/x", "/pub/\u00e4": "/pub/%C3%A4", "/pub/a b#c?d": "/pub/a%20b", "/v*/x?": "/v*/x", "/a%2fb": "/a%2fb", "//a/b?c": "//a/b", "/a/../b?c": "/a/../b",
		`/a\b`: "/a%5Cb", "/%zz?x": "/%zz?x", "/\n": "/\n", "": "", "a": "a", "http://a.test/b": "http://a.test/b", "?": "?",
	} {
		got := Sent(typed)
		if got != want {
			t.Errorf("%q is %q, want %q", typed, got, want)
		}
		_, unclear := Path(got)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + typed + " HTTP/1.1\r\nHost: a.test\r\n\r\n")))
		if err != nil && unclear == nil && !strings.Contains(typed, " ") || err == nil && r.URL.EscapedPath() != got && !r.URL.IsAbs() {
			t.Errorf("%q is %q to net/http: %v", typed, r.URL.EscapedPath(), err)
		}
	}
}

func TestTarget(t *testing.T) {
	for destination, want := range map[string]string{
		"https://a.test/b%20c": "/b c", "/b": "/b", "https://a.test": "", "https://a.test/b?c": "", "//a.test/b": "", "b": "", "/b\n/c": "", "/b/../c": "",
	} {
		if got, err := Target(destination); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", destination, got, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		methods, path string
		matches       []string
		others        []string
	}{
		{"", "", []string{"GET /", "PUT /a/b"}, nil},
		{"GET,HEAD", "", []string{"GET /", "HEAD /a"}, []string{"POST /", "get /", "GETS /"}},
		{"", "/a", []string{"GET /a"}, []string{"GET /", "GET /a/", "GET /ab", "GET /a/b", "GET /A"}},
		{"GET", "/pub/**", []string{"GET /pub/", "GET /pub/x", "GET /pub/x/y/"}, []string{"GET /pub", "GET /public", "GET /x/pub/y", "POST /pub/x"}},
		{"", "/**", []string{"GET /", "GET /a/b"}, nil},
		{"", "/*/*/info/refs", []string{"GET /me/r.git/info/refs"}, []string{"GET /me/info/refs", "GET /a/b/c/info/refs", "GET /me/r/info/refs/"}},
		{"", "/**/info/refs", []string{"GET /info/refs", "GET /a/b/info/refs", "GET /info/refs/info/refs"}, []string{"GET /info/refs/x", "GET /info"}},
		{"", "/v*/x*y", []string{"GET /v1/xy", "GET /v/xyxy"}, []string{"GET /v1/xyz", "GET /a/xy", "GET /v1/x/y"}},
		{"", "/a%20b", []string{"GET /a b"}, []string{"GET /a%20b"}},
		{"", "/v%2A/%2a*", []string{"GET /v*/*", "GET /v*/*x"}, []string{"GET /v1/*", "GET /v*/x"}},
		{"", "/%2A%2A", []string{"GET /**"}, []string{"GET /a", "GET /a/b"}},
		{"M-SEARCH,GET", "/a", []string{"M-SEARCH /a"}, []string{"SEARCH /a"}},
	} {
		p, err := Parse(c.methods, c.path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(requests []string, want bool) {
			for _, r := range requests {
				method, path, _ := strings.Cut(r, " ")
				if p.Matches(method, path) != want {
					t.Errorf("%s %s: %q matches: %v", c.methods, c.path, r, !want)
				}
			}
		}
		check(c.matches, true)
		check(c.others, false)
	}
	for _, c := range [][2]string{{"get", ""}, {"GET,", ""}, {"-GET", ""}, {"CONNECT", "/a"}, {"TRACE", ""}, {"GET", "a"}, {"GET", "/a/../b"}, {"GET", "/a**"}, {"GET", "//"}, {"", "/" + strings.Repeat("a", maxPattern)}} {
		if p, err := Parse(c[0], c[1]); err == nil {
			t.Errorf("%q is %+v", c, p)
		}
	}
}

// TestNarrowest compares patterns that describe one request. A path that was cut has a pattern about its folder.
func TestNarrowest(t *testing.T) {
	long := "/a/" + strings.Repeat("b/", maxPattern/2) + "c"
	for request, want := range map[string]string{
		"GET /x": "GET /x", "GET /": "GET /", "GET /api/v*/x": "GET /api/v%2A/x", "GET /**": "GET /%2A%2A", "GET /it's": "GET /it%27s", "GET /%2a%20y": "GET /%2a%20y",
		"M-SEARCH /x": "M-SEARCH /x", "-X /x": " /x", "PUT /a/b/cde...": "PUT /a/b/**", "PUT /abc...": "PUT /**", "GET " + long: "GET " + long[:maxPattern-3] + "**",
		"GET /a/../b": "", "GET /a/..": "", "GET //x": "", "GET x...": "", "GET ": "", "get /x": "", "GET,PUT /x": "", "TRACE /x": "", "CONNECT /x": "",
	} {
		method, path, _ := strings.Cut(request, " ")
		methods, pattern, ok := Narrowest(method, path)
		if got := methods + " " + pattern; ok != (want != "") || ok && got != want {
			t.Errorf("%.80q: %.80q, %v", request, got, ok)
		}
		p, err := Parse(methods, pattern)
		if decoded, unclear := Path(path); ok && (err != nil || unclear != nil || !p.Matches(method, decoded)) {
			t.Errorf("%.80q: %.80q %.80q does not match it: %v, %v", request, methods, pattern, err, unclear)
		}
	}
}

// FuzzPath checks that a path that is not refused means the same to a server that decodes it again or cleans it.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/", "/a/b", "/%2e%2e/", "/a%2fb", "/a;x/..;/b", "/%252f", "/a//b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		decoded, err := Path(raw)
		if err != nil {
			return
		}
		once, err := url.PathUnescape(raw)
		if err != nil || once != decoded {
			t.Fatalf("%q is %q, and %q to net/url: %v", raw, decoded, once, err)
		}
		if again, err := url.PathUnescape(decoded); err == nil && again != decoded {
			t.Errorf("%q is %q if it is decoded twice", raw, again)
		}
		if clean := path.Clean(decoded); clean != decoded && clean+"/" != decoded {
			t.Errorf("%q is %q if it is cleaned", raw, clean)
		}
	})
}

// FuzzPattern checks that a pattern takes a bounded time, and that it never matches less than a longer "**".
func FuzzPattern(f *testing.F) {
	f.Add("/a/**/b", "/a/x/b")
	f.Add("/*a*a*b", "/aaaaaaaaaa")
	f.Fuzz(func(t *testing.T, pattern, raw string) {
		p, err := Parse("", pattern)
		decoded, bad := Path(raw)
		if err != nil || bad != nil {
			return
		}
		all, _ := Parse("GET", "/**")
		if p.Matches("GET", decoded) && !all.Matches("GET", decoded) {
			t.Errorf("%q matches %q, and /** does not", pattern, raw)
		}
		if all.Matches("POST", decoded) {
			t.Error("another method matches")
		}
	})
}
