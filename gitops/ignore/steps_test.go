package ignore

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// counted is a copy of the algorithm of git before 2.41 (wildmatch.c, dowild), which counts its steps.
type counted struct {
	pattern, text string
	pathname      bool // "*" does not match a slash
	steps         float64
}

type outcome int

const (
	matches outcome = iota
	differs
	abortAll
	abortToDirs
)

func (c *counted) byteAt(text string, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

func (c *counted) wild(p, t int) outcome {
	for ; p < len(c.pattern); p, t = p+1, t+1 {
		c.steps++
		at, char := c.byteAt(c.text, t), c.pattern[p]
		if at == 0 && char != '*' {
			return abortAll
		}
		switch char {
		case '\\':
			p++
			if at != c.byteAt(c.pattern, p) {
				return differs
			}
		case '?':
			if c.pathname && at == '/' {
				return differs
			}
		case '[':
			set, n := parseSet(c.pattern[p:])
			if n == 0 {
				return abortAll
			}
			c.steps += float64(n)
			if p += n - 1; !set[at] {
				return differs
			}
		case '*':
			next, to, result, done := c.star(p, t)
			if done {
				return result
			}
			p, t = next, to
		default:
			if char != at {
				return differs
			}
		}
	}
	if t < len(c.text) {
		return differs
	}
	return matches
}

// star matches a star and all that is after it. If done is false, it has only found the slash that ends a component.
func (c *counted) star(p, t int) (next, to int, result outcome, done bool) {
	begin, slashes := p, !c.pathname
	for p++; c.byteAt(c.pattern, p) == '*'; {
		p++
	}
	after := c.byteAt(c.pattern, p)
	if p-begin > 1 && c.pathname {
		escaped := after == '\\' && c.byteAt(c.pattern, p+1) == '/'
		if slashes = (begin == 0 || c.pattern[begin-1] == '/') && (after == 0 || after == '/' || escaped); slashes && after == '/' {
			if c.wild(p+1, t) == matches {
				return 0, 0, matches, true
			}
		}
	}
	switch end := strings.IndexByte(c.text[t:], '/'); {
	case after == 0 && !slashes && end >= 0:
		return 0, 0, differs, true
	case after == 0:
		return 0, 0, matches, true
	case after == '/' && !slashes && end < 0:
		return 0, 0, differs, true
	case after == '/' && !slashes:
		return p, t + end, 0, false
	}
	return 0, 0, c.each(p, t, slashes), true
}

// each tries the pattern from p on at each place of the text from t on.
func (c *counted) each(p, t int, slashes bool) outcome {
	for t < len(c.text) {
		if after := c.pattern[p]; strings.IndexByte(`*?[\`, after) < 0 {
			for t < len(c.text) && (slashes || c.text[t] != '/') && c.text[t] != after {
				t++
				c.steps++
			}
			if c.byteAt(c.text, t) != after {
				return differs
			}
		}
		c.steps++
		switch result := c.wild(p, t); {
		case result != differs:
			if !slashes || result != abortToDirs {
				return result
			}
		case !slashes && c.text[t] == '/':
			return abortToDirs
		}
		t++
	}
	return abortAll
}

// gitsSteps returns the steps that git needs for a pattern and a path, and the result.
func gitsSteps(pattern, path string) (float64, bool) {
	p, fixed, wild, ok := splitPattern(pattern)
	if p != nil && p.anyDepth {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	text, found := strings.CutPrefix(path, fixed)
	if !ok || !found {
		return 0, false
	}
	c := counted{pattern: wild, text: text, pathname: !p.anyDepth}
	result := c.wild(0, 0)
	return c.steps, result == matches
}

// limitsOf returns the narrowest limits for a path.
func limitsOf(path string) (l Limits) {
	for component := range strings.SplitSeq(path, "/") {
		l.Component = max(l.Component, float64(len(component)))
	}
	l.Bytes, l.Slashes = float64(len(path)), float64(strings.Count(path, "/"))
	return l
}

// TestStepsAreGits compares the bound with the steps of git's algorithm, for random patterns and the paths that fit them
// nearly. The algorithm's results are compared with our own matching, so that the copy cannot go wrong unnoticed.
func TestStepsAreGits(t *testing.T) {
	parts := strings.Fields(`a b * ** **/ / */ *a *a*a a/ **/a/ **/*a/ **/*a*/ **/a*a/ ? [ab] [!b] **\/ \a a** /** aaa *[ab]a *? *??`)
	bits := strings.Fields("a b c / a/ aa aaaa/ a/a/a/ a/a/a/a/c ab/ b/ aaaaaaaa aaaaaac")
	random := rand.New(rand.NewPCG(1, 7))
	join := func(from []string, n int) string {
		var b strings.Builder
		for range 1 + random.IntN(n) {
			part := from[random.IntN(len(from))]
			b.WriteString(strings.Repeat(part, 1+random.IntN(4)*random.IntN(2)))
		}
		return b.String()
	}
	closest := 0.0
	for range 100_000 {
		pattern := join(parts, 5)
		path := strings.Trim(strings.ReplaceAll(join(bits, 6), "//", "/"), "/")
		p, ok := parsePattern(pattern)
		bound := AttributeSteps(pattern, limitsOf(path))
		if !ok || p.Negative || p.folder || path == "" || strings.Contains(path, "//") || bound > 1e7 {
			continue
		}
		steps, matched := gitsSteps(pattern, path)
		if closest = max(closest, steps/bound); steps > bound {
			t.Fatalf("pattern %q and path %q take %.0f steps; want at most %.0f", pattern, path, steps, bound)
		}
		if want := p.matchesItself(path, false); matched != want {
			t.Fatalf("the copy of git's algorithm matches pattern %q with path %q: %v; want %v", pattern, path, matched, want)
		}
	}
	t.Logf("the closest bound is %.2f times the steps", 1/closest)
}

// TestStepsOfTheWorst compares the bound with paths that are as bad as possible for a family of patterns.
func TestStepsOfTheWorst(t *testing.T) {
	for _, c := range []struct{ repeated, end, path string }{
		{"**/", "b", strings.Repeat("a/", 40)},
		{"**/a/", "b", strings.Repeat("a/", 40)},
		{"a/**/", "b", strings.Repeat("a/", 40)},
		{"**/a/", "*.b", strings.Repeat("a/", 40)},
		{"*a", "b", strings.Repeat("a", 80)},
		{"*?", "b", strings.Repeat("a", 60)},
		{"*a", "/b", strings.Repeat("a", 80) + "/"},
		{"*a*/", "b", strings.Repeat("aaaaaaaa/", 8)},
		{"**/*a*/", "b", strings.Repeat("aaa/", 20)},
		{"**/*a*a/", "b", strings.Repeat("aaaa/", 20)},
		{"**/", "*a*ab", strings.Repeat("aaaa/", 20)},
		{"**/aaa*", "b", strings.Repeat("aaaa/", 20)},
	} {
		path := c.path + "c" // so that git does not find out that the path has ended
		for n := 1; n < 8; n++ {
			text := strings.Repeat(c.repeated, n) + c.end
			bound := Steps(text, limitsOf(path))
			if bound > 1e8 {
				break
			}
			steps, _ := gitsSteps(text, path)
			if steps > bound {
				t.Errorf("pattern %q and path %q take %.0f steps; want at most %.0f", text, path, steps, bound)
			}
			t.Logf("%-40s %12.0f of %12.0f", text, steps, bound)
		}
	}
}

// The limits of a repository, and a number of steps for which git needs some seconds.
var repositoryLimits, slow = Limits{4096, 255, 128}, float64(1 << 32)

// TestStepsOfPatterns checks usual patterns, and some for which git needs too long.
func TestStepsOfPatterns(t *testing.T) {
	for text, most := range map[string]float64{
		"*.o": 1e3, "build/": 1e2, "/a/b/*.js": 1e3, "**/node_modules/**": 1e5, "**/build/**/*.o": 1e7, "*.min.*.js": 1e6, "*.[Cc]ache": 1e4,
		"**/[Pp]ackages/*": 1e5, "[Bb]uild[Ll]og.*": 1e2, "*a*b*c": 1e8, "**/a/**/b/**/*.properties": slow, "**/*.srcs/**/ip/**/*.xml": slow,
		"report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json": slow / 7,
	} {
		if got := Steps(text, repositoryLimits); got > most {
			t.Errorf("%q: %.2g steps, want at most %.2g", text, got, most)
		}
	}
	for _, text := range []string{
		strings.Repeat("**/a/", 12) + "b", strings.Repeat("a/**/", 14) + "b", strings.Repeat("*a", 25) + "b", "x/" + strings.Repeat("**/*a*/", 9) + "b",
		strings.Repeat("**/", 30) + "x[", strings.Repeat("*?", 9), strings.Repeat("*a*/", 9) + "b", strings.Repeat("**/", 1<<20) + "a",
		"!" + strings.Repeat("**/a/", 12) + "b", "**/*[" + strings.Repeat("ab", 1<<20) + "]*a",
	} {
		if got := Steps(text, repositoryLimits); got <= slow {
			t.Errorf("%.40q: %.2g steps, want more than %.2g", text, got, slow)
		}
	}
	for _, text := range []string{strings.Repeat("a/", 1<<20), strings.Repeat("?", 1<<20)} { // in time
		if got := Steps(text, repositoryLimits); got > slow {
			t.Errorf("%.40q: %.2g steps", text, got)
		}
	}
}
