package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const (
	value       = "sk-real-0123456789abcdefghij"
	placeholder = "sk-none-9876543210zyxwvutsrq"
	other       = "sk-other-aaaabbbbccccddddeeee"
)

var (
	bearer = Credential{Name: "api", Header: "Authorization", Format: "Bearer %s", Placeholder: placeholder}
	second = Credential{Name: "second", Header: "X-Api-Key", Format: "%s", Placeholder: other}
)

func login(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

// TestFind tries all places in which clients put credentials.
func TestFind(t *testing.T) {
	here, elsewhere := []Credential{bearer}, []Credential{second}
	for name, c := range map[string]struct {
		header http.Header
		query  string
		used   bool
		fails  bool
	}{
		"none":               {http.Header{"Accept": {"*/*"}}, "beta=true", false, false},
		"bearer":             {http.Header{"Authorization": {"Bearer " + placeholder}}, "", true, false},
		"lower case, folded": {http.Header{"Authorization": {"bearer   " + placeholder + " "}}, "", true, false},
		"token":              {http.Header{"Authorization": {"token " + placeholder}}, "", true, false},
		"alone":              {http.Header{"Authorization": {placeholder}}, "", true, false},
		"x-api-key":          {http.Header{"X-Api-Key": {placeholder}}, "", true, false},
		"login, password":    {http.Header{"Authorization": {login("x-access-token:" + placeholder)}}, "", true, false},
		"login, user":        {http.Header{"Authorization": {login(placeholder + ":x-oauth-basic")}}, "", true, false},
		"twice":              {http.Header{"Authorization": {"Bearer " + placeholder}, "X-Api-Key": {placeholder}}, "", true, false},
		"empty scheme":       {http.Header{"Authorization": {"Bearer "}, "X-Api-Key": {""}}, "", false, false},

		"foreign":               {http.Header{"Authorization": {"Bearer sk-foreign"}}, "", false, true},
		"foreign, other header": {http.Header{"X-Goog-Api-Key": {"AIza-foreign"}}, "", false, true},
		"foreign, underscores":  {http.Header{"X_api_key": {"foreign"}}, "", false, true},
		"foreign login":         {http.Header{"Authorization": {login("user:password")}}, "", false, true},
		"both in a login":       {http.Header{"Authorization": {login("a-foreign-key-of-some-length:" + placeholder)}}, "", false, true},
		"both in one header":    {http.Header{"Authorization": {"Bearer " + placeholder, "Bearer foreign"}}, "", false, true},
		"both in two":           {http.Header{"Authorization": {"Bearer " + placeholder}, "X-Api-Key": {"foreign"}}, "", false, true},
		"inside another":        {http.Header{"Authorization": {"Bearer foreign" + placeholder}}, "", false, true},
		"elsewhere":             {http.Header{"X-Anything": {"a " + other}}, "", false, true},
		"elsewhere, login":      {http.Header{"Authorization": {login("u:" + other)}}, "", false, true},
		"query":                 {http.Header{}, "a=b&key=foreign", false, true},
		"query, encoded":        {http.Header{}, "%6bey=foreign", false, true},
		"query, semicolon":      {http.Header{}, "a;access_token=foreign", false, true},
		"query, broken":         {http.Header{}, "%zz=1", false, true},
		"foreign, dots":         {http.Header{"X.api.key": {"foreign"}}, "", false, true},
		"query, dollar":         {http.Header{}, "$key=foreign", false, true},
		"query, brackets":       {http.Header{}, "a=b&Access.Token[]=foreign", false, true},
		"query, blank":          {http.Header{}, "+key=foreign", false, true},
		"query, others":         {http.Header{}, "keys=1&page_token=x&keyword=y&monkey=z&filter[key]=a&signal=b&design[]=c&password=", false, false},
		"query, field":          {http.Header{}, "user[password]=foreign", false, true},
		"query, field, encoded": {http.Header{}, "a%5Btoken%5D=foreign", false, true},
		"query, field of field": {http.Header{}, "a[b][client_secret]=foreign", false, true},
		"query, parts":          {http.Header{}, "key[a]=foreign", false, true},
		"query, odd brackets":   {http.Header{}, "k[e]y=foreign", false, true},
		"query, signed":         {http.Header{}, "X-Amz-Signature=foreign", false, true},
		"query, signature":      {http.Header{}, "sv=1&sig=foreign", false, true},
		"foreign, vault":        {http.Header{"X-Vault-Token": {"foreign"}}, "", false, true},
		"foreign, token":        {http.Header{"X-Api-Token": {"foreign"}}, "", false, true},
		"protocols, underscore": {http.Header{"Sec_websocket-Protocol": {"openai-insecure-api-key.sk-foreign"}}, "", false, true},
		"protocols":             {http.Header{"Sec-Websocket-Protocol": {"realtime, openai-insecure-api-key.sk-foreign"}}, "", false, true},
	} {
		used, err := Find(c.header, c.query, true, here, elsewhere)
		if (used != nil) != c.used || (err != nil) != c.fails || used != nil && used.Name != bearer.Name {
			t.Errorf("%s: %v, %v", name, used, err)
		}
		if err != nil && (strings.Contains(err.Error(), "sk-") || strings.Contains(err.Error(), "foreign")) {
			t.Errorf("%s: the error has a credential: %v", name, err)
		}
	}
	// The header of a credential is closed to other keys for all requests to its host.
	own := Credential{Name: "own", Header: "X-Own", Format: "%s", Placeholder: placeholder}
	if _, err := Find(http.Header{"X-Own": {"foreign"}}, "", true, nil, []Credential{own}); err == nil {
		t.Error("a foreign key in the credential's own header")
	}
	// A host without a credential takes any, but no placeholder.
	for text, fails := range map[string]bool{"Bearer foreign": false, "Bearer " + placeholder: true} {
		if used, err := Find(http.Header{"Authorization": {text}}, "", false, nil, here); used != nil || (err != nil) != fails {
			t.Errorf("%s: %v, %v", text, used, err)
		}
	}
	if _, err := Find(nil, "x="+placeholder, false, nil, here); err == nil {
		t.Error("a placeholder in a query goes elsewhere")
	}
	if _, err := Find(http.Header{"X-Api-Key": {other}, "Authorization": {"Bearer " + placeholder}}, "", true, []Credential{bearer, second}, nil); err == nil {
		t.Error("two credentials")
	}
}

// TestApply checks the header that a service reads, and that nothing else remains.
func TestApply(t *testing.T) {
	for format, want := range map[string]string{"Bearer %s": "Bearer " + value, "%s": value, "Basic x:%s": login("x:" + value)} {
		c := Credential{Header: "X-Own", Format: format}
		h := http.Header{"Authorization": {"Bearer " + placeholder}, "X_api-Key": {"x"}, "X-Own": {"a", "b"}, "Cookie": {"c=d"}, "Accept": {"*/*"}}
		c.Apply(h, value)
		if len(h) != 2 || len(h["X-Own"]) != 1 || h.Get("X-Own") != want || h.Get("Accept") == "" {
			t.Errorf("%s: %v", format, h)
		}
		if err := CheckFormat(format); err != nil {
			t.Error(err)
		}
	}
	for _, format := range []string{"", "x", "%s%s", "%d %s", "%s\r\nX: y", "\u00e4%s"} {
		if CheckFormat(format) == nil {
			t.Errorf("%q is a format", format)
		}
	}
	for _, bad := range []string{"", "a b", "a\nb", "\u00e4", strings.Repeat("x", maxValue+1)} {
		if err := CheckValue(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}

// guard returns what a client reads of an answer.
func guard(content io.Reader, header, trailer http.Header) (got string, found bool, err error) {
	answer := &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(content)}
	if err = echoesOf(value).Guard(answer, func() { found = true }); err != nil {
		return "", found, err
	}
	answer.Trailer = trailer
	text, err := io.ReadAll(answer.Body)
	return string(text), found, err
}

func TestEchoesAreCut(t *testing.T) {
	for name, text := range map[string]string{
		"as it is": value, "in a text": "your key is " + value + ", thanks", "after its beginning": value[:9] + value, "twice": value + value,
		"base64": base64.StdEncoding.EncodeToString([]byte(value)), "base64, second": login("u:" + value), "base64, third": login("us:" + value),
		"base64, URL": base64.URLEncoding.EncodeToString([]byte("abc" + value + "d")),
	} {
		for _, content := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.HalfReader(strings.NewReader(text))} {
			got, found, err := guard(content, nil, nil)
			if !errors.Is(err, ErrEcho) || !found || strings.Contains(got, value[:12]) && name != "after its beginning" {
				t.Errorf("%s: %q, %v, %v", name, got, found, err)
			}
		}
	}
	for _, text := range []string{"%", "a&", `\u00`, "100 % & more", `{"a":"\n\"b\""}`, "%" + value[:5], "", "x", value[:len(value)-1], strings.Repeat(value[:9], 1000), strings.Repeat("x", 100<<10) + value[:5]} {
		for _, content := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			if got, found, err := guard(content, http.Header{"A": {"b"}}, nil); got != text || found || err != nil {
				t.Errorf("%.20q: %.20q, %v, %v", text, got, found, err)
			}
		}
	}
	if _, _, err := guard(strings.NewReader(""), http.Header{"Location": {"/?" + value}}, nil); !errors.Is(err, ErrEcho) {
		t.Error("the value is in a header")
	}
	if _, found, err := guard(strings.NewReader("x"), nil, http.Header{"After": {value}}); !errors.Is(err, ErrEcho) || !found {
		t.Error("the value is in a trailer")
	}
}

// special has characters that no escape leaves as they are.
const special = `sk/real+0123=45&6789"ab'cd\ef<gh>ij%kl`

// TestEscapedEchoesAreCut writes a value as libraries for JSON, HTML and URLs do.
func TestEscapedEchoesAreCut(t *testing.T) {
	asJSON, _ := json.Marshal(special)
	all := func(form func(byte) string) (text string) {
		for i := range len(special) {
			text += form(special[i])
		}
		return text
	}
	for name, text := range map[string]string{
		"query": url.QueryEscape(special), "path": url.PathEscape(special), "JSON": string(asJSON), "slashes": strings.ReplaceAll(string(asJSON), "/", `\/`), "HTML": html.EscapeString(special),
		"all, percent": all(func(c byte) string { return fmt.Sprintf("%%%02x", c) }), "all, JSON": all(func(c byte) string { return fmt.Sprintf(`\u%04X`, c) }),
		"all, HTML": all(func(c byte) string { return fmt.Sprintf("&#x%x;", c) }), "all, JavaScript": all(func(c byte) string { return fmt.Sprintf(`\x%02x`, c) }),
		"login": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("u:" + special))),
	} {
		text = "100% & \\more, " + text + " and more"
		for _, content := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.HalfReader(strings.NewReader(text))} {
			answer := &http.Response{StatusCode: 200, Body: io.NopCloser(content)}
			if err := echoesOf(special).Guard(answer, func() {}); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			if !errors.Is(err, ErrEcho) || !strings.HasPrefix(text, string(got)) || len(got) > strings.Index(text, "more, ")+len("more, ")+3 {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if err := echoesOf(special).Guard(&http.Response{Header: http.Header{"Location": {"/?" + text}}}, func() {}); !errors.Is(err, ErrEcho) {
			t.Errorf("%s, in a header: %v", name, err)
		}
	}
}

// TestUnsearchable has a server send what cannot be searched.
func TestUnsearchable(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		method string
		want   error
	}{
		{200, http.Header{"Content-Encoding": {"gzip"}}, "GET", ErrUnsearchable}, {200, http.Header{"Content-Encoding": {"identity, BR"}}, "GET", ErrUnsearchable},
		{500, http.Header{"Content-Encoding": {"identity", "x"}}, "POST", ErrUnsearchable}, {200, http.Header{"Transfer-Encoding": {"gzip"}}, "GET", ErrUnsearchable},
		{206, nil, "GET", ErrUnsearchable}, {226, nil, "GET", ErrUnsearchable},
		{200, http.Header{"Content-Encoding": {"Identity"}}, "GET", nil}, {200, http.Header{"Content-Encoding": {"gzip"}}, "HEAD", nil}, {304, http.Header{"Content-Encoding": {"gzip"}}, "GET", nil},
		{200, http.Header{strings.ToUpper(value): {"x"}}, "GET", ErrEcho},
	} {
		answer := &http.Response{StatusCode: c.status, Header: c.header, Request: &http.Request{Method: c.method}, Body: http.NoBody}
		if err := echoesOf(value).Guard(answer, t.FailNow); !errors.Is(err, c.want) {
			t.Errorf("%d %v: %v", c.status, c.header, err)
		}
	}
	if err := echoesOf(value).Guard(&http.Response{Trailer: http.Header{http.CanonicalHeaderKey(value): nil}}, t.FailNow); !errors.Is(err, ErrEcho) {
		t.Errorf("the value is the name of a trailer: %v", err)
	}
}

// TestEventsAreNotHeldBack checks that each part of a stream is passed on as soon as it was read.
func TestEventsAreNotHeldBack(t *testing.T) {
	events, write := io.Pipe()
	answer := &http.Response{StatusCode: 200, Body: events}
	if err := echoesOf(value).Guard(answer, t.FailNow); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		go io.WriteString(write, "data: {\"%&\\n\"}\n\n")
		if n, err := answer.Body.Read(make([]byte, 100)); n != 16 || err != nil {
			t.Fatal(n, err)
		}
	}
}

func TestStore(t *testing.T) {
	var s Store
	now := time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC)
	s.Set(map[string]string{"a": value, "bad": "a\nb"})
	if got, _, ok := s.Get("a"); got != value || !ok {
		t.Error(got, ok)
	}
	if _, _, ok := s.Get("bad"); ok {
		t.Error("a value that is not one")
	}
	for i, want := range []bool{true, true, false} {
		if s.Count("a", 2, now) != want {
			t.Errorf("request %d", i)
		}
	}
	if !s.Count("a", 2, now.Add(2*time.Hour)) || s.Used("a").Total != 3 {
		t.Error("another day")
	}
	var successor Store
	successor.Continue("a", 7, 2, now)
	successor.Set(map[string]string{"a": value})
	if successor.Count("a", 2, now.Add(time.Minute)) || !successor.Count("a", 2, now.Add(2*time.Hour)) || successor.Used("a").Total != 8 {
		t.Errorf("a successor: %+v", successor.Used("a"))
	}
	after, around := now.Add(2*time.Hour), Store{}
	if around.Set(map[string]string{"a": value}); !around.Count("a", 2, after) || !around.Count("a", 2, now) || around.Count("a", 2, after) || around.Count("a", 2, now) {
		t.Errorf("a clock around midnight: %+v", around.Used("a"))
	}
	successor.Continue("a", 2, around.Used("a").Today, around.Used("a").Last)
	if successor.Count("a", 2, now) || successor.Count("a", 2, after) || !successor.Count("a", 2, now.Add(-48*time.Hour)) {
		t.Errorf("a clock that goes back: %+v", successor.Used("a"))
	}
	for _, x := range []struct {
		status, kept int
		changed      bool
	}{{200, 0, false}, {401, 401, true}, {401, 401, false}, {403, 403, true}, {404, 0, true}, {500, 500, true}, {529, 529, true}, {404, 0, true}, {429, 429, true}} {
		if changed := s.Answered("a", x.status); changed != x.changed || s.Used("a").Bad != x.kept {
			t.Errorf("after %d: %d is kept, changed %v", x.status, s.Used("a").Bad, changed)
		}
	}
	if s.Set(map[string]string{"a": value, "b": "another-value"}); s.Used("a").Bad != 429 {
		t.Error("the same value counts as a new one")
	}
	if s.Set(map[string]string{"a": "a-new-value"}); s.Used("a").Bad != 0 {
		t.Error("a new value counts as refused")
	}
}

// FuzzFind checks that no text but the placeholder counts as one, and that no request with a value keeps another credential.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"Bearer " + placeholder, login("u:" + placeholder), login(placeholder), "Basic ===", "Bearer foreign", " ", placeholder + placeholder} {
		f.Add("Authorization", seed, "a=b")
	}
	f.Add("x_API-key", placeholder, "key=x")
	f.Fuzz(func(t *testing.T, name, text, query string) {
		h := http.Header{name: {text}, "X-Api-Key": {placeholder}}
		used, err := Find(h, query, true, []Credential{bearer}, []Credential{second})
		if err != nil {
			return
		}
		if used == nil {
			t.Fatal("the placeholder is not found")
		}
		used.Apply(h, value)
		for n, values := range h {
			if carries(n) && (n != "Authorization" || len(values) != 1 || values[0] != "Bearer "+value) {
				t.Errorf("%q: %q", n, values)
			}
		}
	})
}

// FuzzEchoes cuts an answer in two at any place.
func FuzzEchoes(f *testing.F) {
	f.Add("a", "b", uint8(3), uint8(0))
	f.Add(value[:5], value[3:], uint8(9), uint8(1))
	f.Add(value[:5], "", uint8(5), uint8(2))
	f.Add("x", "y", uint8(6), uint8(3))
	f.Add("x", "y", uint8(12), uint8(4))
	f.Fuzz(func(t *testing.T, before, after string, at, kind uint8) {
		echo := []string{value, base64.StdEncoding.EncodeToString([]byte(value)), "", strings.ReplaceAll(value, "-", "%2D"), strings.ReplaceAll(value, "r", "&#114;")}[kind%5]
		if kind%5 > 2 && strings.ContainsAny(before[max(0, len(before)-maxEscape):], `%&\`) {
			return // which may make another escape of it
		}
		text := before + echo + after
		cut := min(int(at), len(text))
		got, found, err := guard(io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:])), nil, nil)
		if found != errors.Is(err, ErrEcho) || echo != "" && !found || strings.Contains(got, value) {
			t.Errorf("%q at %d: %q, %v, %v", text, cut, got, found, err)
		}
		if !found && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
