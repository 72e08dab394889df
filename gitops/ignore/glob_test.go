package ignore

import "testing"

// FuzzGlob compares with the plain way to match, which takes for ever on some patterns.
func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("**/x/**", "a/b/x/y")
	f.Add("a/**/[!b-d]\\*", "a/x/y*")
	f.Add("**", "/")
	f.Add("[[:alpha:]]*", "z")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 16 || len(text) > 16 {
			return // the plain way would take for ever
		}
		g := parseGlob(pattern)
		if got, want := g.match(text), plainly(g, 0, text); got != want {
			t.Errorf("%q on %q: %v; want %v", pattern, text, got, want)
		}
	})
}

// plainly matches from the n-th token on by trying every way.
func plainly(g glob, n int, text string) bool {
	if n == len(g) {
		return text == ""
	}
	switch g[n].kind {
	case star, deep:
		for i := 0; ; i++ {
			if plainly(g, n+1, text[i:]) {
				return true
			}
			if i == len(text) || g[n].kind == star && text[i] == '/' {
				return false
			}
		}
	case dirs:
		if plainly(g, n+2, text) {
			return true
		}
		for i := range len(text) {
			if text[i] == '/' && plainly(g, n+2, text[i+1:]) {
				return true
			}
		}
		return false
	}
	if text == "" {
		return false
	}
	_, ok := g[n].step(n, text[0])
	return ok && plainly(g, n+1, text[1:])
}

func TestPatternOf(t *testing.T) {
	for _, path := range []string{"a", "a/b", "*.go", "[x]", `back\slash`, "space ", "two  ", "!a", "#a", "a?b"} {
		p, ok := Parse(Exactly(path))
		if !ok || !p.Matches(path) || p.Matches(path+"x") || p.Matches("d/"+path) || p.Negative {
			t.Errorf("%q: the pattern of it is %q", path, Exactly(path))
		}
	}
	if p, _ := Parse(Exactly("*.go")); p.Matches("a.go") {
		t.Error("a star in a path matches other names")
	}
}
