package policy

import (
	"strings"
	"testing"
)

// modes are what an entry of a tree can be.
var modes = []string{"", runs, linkTo, gitlink}

// FuzzGate lets a commit add anything anywhere beside what was there.
func FuzzGate(f *testing.F) {
	for _, cases := range ruleCases {
		for _, c := range cases {
			for path, content := range c.change {
				if len(content) < 4<<10 {
					f.Add(path, content, byte(0), c.message)
				}
			}
		}
	}
	f.Add(".gitattributes", "[attr]a b\n[attr]b a\n* a b filter=lfs\n", byte(0), "m")
	f.Add("a/b/c", "../../../b", byte(2), "m")
	f.Fuzz(func(t *testing.T, path, content string, mode byte, message string) {
		if path == "" || len(path) > 4096 || strings.Contains(path, "\x00") || hasEmpty(path) {
			t.Skip()
		}
		objects := newStore()
		change := files{path: modes[int(mode)%len(modes)] + content}
		c := objects.commit(testBase, testBase.with(change), message)
		found, err := New(Settings{}, testFacts, objects).Check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range found {
			said := finding.Detail + strings.Join(finding.Paths, "")
			if strings.ContainsAny(said, "\x00\x1b\u202e\n") || len(said) > 64<<10 {
				t.Errorf("%+v", finding)
			}
		}
	})
}

func hasEmpty(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			return true
		}
	}
	return false
}

// FuzzGlob compares with the plain way to match, which takes for ever on some patterns.
func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("**/x/**", "a/b/x/y")
	f.Add("a/**/[!b-d]\\*", "a/x/y*")
	f.Add("**", "/")
	f.Add("[[:alpha:]]*", "z")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 16 {
			t.Skip()
		}
		g := parseGlob(pattern)
		if got, want := g.match(text, false), plainly(g, 0, text); got != want {
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
	_, ok := g[n].step(n, text[0], false)
	return ok && plainly(g, n+1, text[1:])
}

// FuzzParseAttributes looks for lines that would be read twice, or beyond their end.
func FuzzParseAttributes(f *testing.F) {
	f.Add([]byte("*.bin filter=lfs -text\n\"a \\\"b\\101\" diff=x\n[attr]m x\n"))
	f.Add([]byte("\"\\"))
	f.Fuzz(func(t *testing.T, content []byte) {
		last := 0
		for _, l := range parseAttributes(content) {
			if l.number <= last || l.pattern != "" && l.macro != "" {
				t.Errorf("%+v", l)
			}
			last = l.number
			for _, state := range l.states {
				if state == "" || strings.ContainsAny(state, attributeSpace) {
					t.Errorf("%+v", l)
				}
			}
		}
	})
}
