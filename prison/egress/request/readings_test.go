package request

import (
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// TestDenies compares rules that deny with paths that some server takes for theirs.
func TestDenies(t *testing.T) {
	for _, c := range []struct {
		methods, path string
		denied        []string
		others        []string
	}{
		{"DELETE", "", []string{"DELETE /", "DELETE /a/b"}, []string{"GET /"}},
		{"", "/admin/**", []string{
			"GET /admin/x", "GET /Admin/x", "GET /ADMIN/", "GET /admin", "GET /admin;a/x", "GET /admin;a", "GET /admin./x", "GET /admin%20/x", "GET /admin%20.%20;a=b/x",
			"GET /admin.;/x", "GET /%20admin/x", "GET /admin%c2%a0/x", "GET /admin::$INDEX_ALLOCATION/x", "GET /admin:$I30:$INDEX_ALLOCATION/x", "GET /%61dm%49n/x",
		}, []string{"GET /", "GET /administrator/x", "GET /admin-/x", "GET /x/admin/y", "GET /admi/n", "GET /admin:x/y"}},
		{"", "/a/secret.txt", []string{"GET /a/Secret.TXT", "GET /a/secret.txt/", "GET /a/secret.txt;v=1", "GET /a/secret.txt;v/w", "GET /a/secret.txt...", "GET /A;/secret.txt;"}, []string{"GET /a/secret", "GET /a", "GET /a/secret.txt/x"}},
		{"", "/disk/", []string{"GET /disk/", "GET /di\u017f\u212a/", "GET /disk"}, []string{"GET /dis"}},
		{"", "/a;v=1", []string{"GET /a;v=1", "GET /A;V=1/"}, []string{"GET /a", "GET /a;v=2"}},
		{"", "/**", []string{"GET /", "GET /a"}, nil},
		{"GET,PUT", "/*.php", []string{"GET /x.php", "PUT /x.PHP.", "GET /x.php%20;a"}, []string{"POST /x.php", "GET /x.html"}},
	} {
		p, err := Parse(c.methods, c.path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(requests []string, want bool) {
			for _, r := range requests {
				method, raw, _ := strings.Cut(r, " ")
				path, err := Path((&url.URL{Path: must(url.PathUnescape(raw))}).EscapedPath())
				if got := p.Denies(method, path); got != want || err != nil {
					t.Errorf("%s %s denies %q: %v, %v", c.methods, c.path, r, got, err)
				}
			}
		}
		check(c.denied, true)
		check(c.others, false)
	}
}

func must(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}

// TestDeniesAll compares random patterns. A pattern that denies all of another one must deny each request that the other one describes, and
// a pattern about one path is denied as a request for the path is.
func TestDeniesAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	words := func(from ...string) string {
		path := ""
		for range 1 + r.IntN(3) {
			path += "/" + from[r.IntN(len(from))]
		}
		return path
	}
	methods := func() string { return []string{"", "", "GET", "PUT", "GET,PUT"}[r.IntN(5)] }
	parse := func(path string) Pattern {
		if r.IntN(4) == 0 {
			path += "/"
		}
		p, err := Parse(methods(), path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := 0
	for range 30_000 {
		p, other, path := parse(words("a", "*", "**", "A*", "*b", "%2A")), parse(words("a", "*", "**", "a*", "*b", "a.", "*;b", "%2A")), words("a", "ab", "A", "b", "a;x", "*", "ab.")
		covers := p.DeniesAll(other)
		for _, method := range []string{"GET", "PUT"} {
			if covers && other.Matches(method, path) {
				if all++; !p.Denies(method, path) {
					t.Errorf("%q denies all of %q, but not %s %q", p, other, method, path)
				}
			}
			one, err := Parse(method, strings.ReplaceAll(path, "*", "%2A"))
			if got := p.DeniesAll(one); err != nil || got != p.Denies(method, path) {
				t.Errorf("%q denies all of %s %q: %v, %v", p, method, path, got, err)
			}
		}
		if !p.DeniesAll(p) || !(Pattern{}).DeniesAll(p) || p.DeniesAll(Pattern{}) && p.methods != nil {
			t.Errorf("%q", p)
		}
	}
	if all < 100 {
		t.Errorf("%d comparisons", all)
	}
}

func TestCheckMethod(t *testing.T) {
	for method, want := range map[string]error{
		"GET": nil, "M-SEARCH": nil, "": errMethod, "delete": errCase, "Delete": errCase, "m-search": errCase, "DELETE ": errMethod, "D\u00cbL": errMethod, "GET_": errMethod, "a.b": errMethod,
		"d\u0131\u017fk": errMethod,
	} {
		if err := CheckMethod(method); !errors.Is(err, want) {
			t.Errorf("%q: %v", method, err)
		}
	}
}

// spoil writes a path in another way that some server reads in the same way.
func spoil(path string, r *rand.Rand) string {
	var b strings.Builder
	for s := range strings.SplitSeq(path[1:], "/") {
		b.WriteByte('/')
		for j := range len(s) {
			switch c := s[j]; r.IntN(4) {
			case 0:
				b.WriteString(strings.ToUpper(string(c)))
			case 1:
				b.WriteString("%" + string("0123456789abcdef"[c>>4]) + string("0123456789ABCDEF"[c&15]))
			default:
				b.WriteByte(c)
			}
		}
		b.WriteString([]string{"", "", ".", "%20", "..%20", ";", ";a=b", ".;..", "%20;x", "/", "/.", "/x/..", "\\"}[r.IntN(13)])
	}
	return b.String()
}

// TestSpoiledPathsAreDenied writes a denied path in random ways. [Path] must refuse it, or the rule must deny it.
func TestSpoiledPathsAreDenied(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	denied := 0
	for _, c := range [][2]string{{"/admin/**", "/admin/users/x"}, {"/a/b", "/a/b"}, {"/**/keys", "/repo/of/keys"}, {"/v*/x*y", "/v1/xzy"}, {"/a/", "/a/"}} {
		p, err := Parse("", c[0])
		if err != nil {
			t.Fatal(err)
		}
		for range 5000 {
			raw := spoil(c[1], r)
			path, err := Path(raw)
			if err != nil {
				continue
			}
			denied++
			if !p.Denies("GET", path) {
				t.Errorf("%s does not deny %q", c[0], raw)
			}
		}
	}
	if denied < 1000 {
		t.Errorf("only %d paths had one meaning", denied)
	}
}

// FuzzDenies checks that a pattern denies what it matches, and what differs from that in case or by a parameter.
func FuzzDenies(f *testing.F) {
	f.Add("/a/**/b", "/a/x/b")
	f.Add("/*a;x*.", "/aa;x.")
	f.Fuzz(func(t *testing.T, pattern, raw string) {
		p, err := Parse("", pattern)
		path, bad := Path(raw)
		if err != nil || bad != nil || !p.Matches("GET", path) {
			return
		}
		if !p.Denies("GET", path) {
			t.Errorf("%q matches %q and does not deny it", pattern, path)
		}
		if strings.ContainsAny(pattern, ";.: %") || strings.ContainsAny(path, ";.: ") || path == "/" {
			return // a pattern about what is ignored
		}
		for _, other := range []string{path, strings.ToUpper(path), strings.ToLower(path), path + ";x", strings.TrimSuffix(path, "/") + ".", path + ". ;"} {
			same := fold(other) == fold(path) || strings.HasPrefix(other, strings.TrimSuffix(path, "/"))
			if same && !p.Denies("GET", other) { // the upper case of some letters is another letter
				t.Errorf("%q matches %q and does not deny %q", pattern, path, other)
			}
		}
	})
}
