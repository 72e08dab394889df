package ignore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// rounds is how often a test goes on that compares so many cases each time. AIRLOCK_TEST_CASES is another number of cases than at
// least those: scripts/fuzz asks for a million.
func rounds(t *testing.T, each, atLeast int) int {
	wanted := atLeast
	if text := os.Getenv("AIRLOCK_TEST_CASES"); text != "" {
		n, err := strconv.Atoi(text)
		gitopstest.Check(t, err)
		wanted = n
	}
	return (wanted + each - 1) / each
}

// grammar makes patterns, and paths that they may match.
type grammar struct{ *rand.Rand }

func (g grammar) pick(of ...string) string { return of[g.IntN(len(of))] }

// sometimes returns a text once in n times.
func (g grammar) sometimes(n int, text string) string {
	if g.IntN(n) == 0 {
		return text
	}
	return ""
}

// nameBytes are those of names: few, so that they meet, and odd ones.
var nameBytes = []string{"a", "a", "b", "b", "c", "A", "B", "0", ".", "-", "_", " ", "!", "#", "]", "[", "^", ":", "*", "?", "\\", "\"", "\t", "\r", "\v", "\f",
	"\x01", "\x7f", "\x80", "\xc3\xa9", "\xff", "~", "{", ",", "+", "="}

func (g grammar) char() string { return nameBytes[g.IntN(len(nameBytes))] }

// set is "[...]", or what looks like it.
func (g grammar) set() string {
	text := "[" + g.pick("", "", "!", "^") + g.sometimes(6, "]")
	for range g.IntN(4) {
		switch g.IntN(7) {
		case 0:
			text += g.char() + "-" + g.char()
		case 1:
			text += "[:" + g.pick("alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "none", "") + ":]"
		case 2:
			text += "\\" + g.char()
		case 3:
			text += g.pick("-", "[:", ":]", "a-\\c", "/", "[.a.]", "--0", "a-")
		default:
			text += g.char()
		}
	}
	return text + strings.Repeat("]", min(1, g.IntN(8)))
}

// atom is a part of a component.
func (g grammar) atom() string {
	switch g.IntN(12) {
	case 0, 1:
		return "*"
	case 2:
		return strings.Repeat("*", 2+g.IntN(3))
	case 3:
		return "?"
	case 4, 5:
		return g.set()
	case 6:
		return "\\" + g.pick(g.char(), "/", "*", "")
	}
	return g.char()
}

// pattern is one line.
func (g grammar) pattern() string {
	text := g.sometimes(4, "!") + g.pick("", "", "", "/", "**/", "**", "//")
	for range g.IntN(3) {
		for range 1 + g.IntN(3) {
			text += g.atom()
		}
		text += g.pick("/", "/", "/", "/**/", "/*/", "\\/", "/***/", "**/")
	}
	for range 1 + g.IntN(4) {
		text += g.atom()
	}
	return text + g.pick("", "", "", "", "/", " ", "  ", "\\ ", "/**", "**", "/*", "\\", "\r", "\t")
}

// path is one that a pattern may match: what is special in it becomes something, and now and then something changes.
func (g grammar) path(pattern string) string {
	var out strings.Builder
	text := strings.TrimLeft(strings.TrimLeft(pattern, "!"), "/")
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case g.IntN(12) == 0:
			out.WriteString(g.pick("", g.char(), "/"))
		case c == '*':
			out.WriteString(g.pick("", "", "a", "b/", "/c", "a/b", "x"))
		case c == '?':
			out.WriteString(g.char())
		case c == '[':
			end := strings.IndexByte(text[min(i+2, len(text)):], ']')
			out.WriteString(g.pick("a", "b", "]", "-", g.char()))
			if end >= 0 {
				i += end + 2
			}
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		default:
			out.WriteByte(c)
		}
	}
	if g.IntN(3) == 0 {
		out.WriteString("/" + g.pick("a", "b", "c/a"))
	}
	var parts []string
	for part := range strings.SplitSeq(out.String(), "/") {
		if part != "" && part != "." && part != ".." && part != ".gitignore" && part != ".gitattributes" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return g.pick("a", "b/c")
	}
	return strings.Join(parts, "/")
}

// patternCase is a .gitignore file and paths.
type patternCase struct {
	lines []string
	paths []string
}

const pathsOfCase = 10

// patternCase makes one; lines that are comments, or empty, are among them.
func (g grammar) patternCase() (c patternCase) {
	for range 1 + g.IntN(4) {
		c.lines = append(c.lines, strings.ReplaceAll(g.pattern(), "\n", ""))
	}
	if g.IntN(8) == 0 {
		c.lines = append(c.lines, g.pick("#a", "", " ", "/", "!", "!/", "\\", "\\#a", "\\!a", "!!a", " a", "*"))
	}
	for range pathsOfCase {
		c.paths = append(c.paths, g.path(c.lines[g.IntN(len(c.lines))]))
	}
	return c
}

// decisive is the number of the line that decides about a path, as our reader has it; 0 for none.
func (c patternCase) decisive(path string) int {
	last := func(path string, folder bool) (line int, ignored bool) {
		for n, text := range c.lines {
			if p, ok := Parse(strings.TrimSuffix(text, "\r")); ok && p.matchesItself(path, folder) {
				line, ignored = n+1, !p.Negative
			}
		}
		return line, ignored
	}
	for end := range len(path) {
		if line, ignored := last(path[:end], true); path[end] == '/' && ignored {
			return line
		}
	}
	line, _ := last(path, false)
	return line
}

// TestPatternsAreGits compares our reader of patterns with git check-ignore: which line decides about a path.
func TestPatternsAreGits(t *testing.T) {
	t.Parallel()
	const cases = 250
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := grammar{rand.New(rand.NewPCG(seed, 0))}
	top := filepath.Join(t.TempDir(), "patterns")
	gitopstest.Command(t, "", nil, "init", "-q", top)
	decided, all := 0, 0
	for range rounds(t, cases*pathsOfCase, 10_000) {
		var made []patternCase
		var ask strings.Builder
		for n := range cases {
			c := g.patternCase()
			dir := fmt.Sprintf("d%d", n)
			gitopstest.Check(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
			gitopstest.Check(t, os.WriteFile(filepath.Join(top, dir, ".gitignore"), []byte(strings.Join(c.lines, "\n")+"\n"), 0o600))
			for _, p := range c.paths {
				ask.WriteString(dir + "/" + p + "\x00")
			}
			made = append(made, c)
		}
		answers := strings.Split(gitopstest.Input(t, top, nil, ask.String(), "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"), "\x00")
		for n, c := range made {
			for k, p := range c.paths {
				want, _ := strconv.Atoi(answers[4*(n*pathsOfCase+k)+1])
				if want > 0 {
					decided++
				}
				all++
				if got := c.decisive(p); got != want {
					t.Errorf("%q of %q: line %d decides, to git line %d", p, c.lines, got, want)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d cases, in %d of them a line decides", all, decided)
	if decided < all/10 {
		t.Errorf("only %d of %d paths matched: that compares little", decided, all)
	}
}

// TestStarsAfterText compares stars that follow other characters with git check-ignore. Git 2.52 changed their meaning.
func TestStarsAfterText(t *testing.T) {
	t.Parallel()
	paths := []string{"foobar", "foo/bar", "foo/a/bar", "fooa/bar", "fooa/b/bar", "foo", "fooa", "a/foo/bar", "a/foobar", "a/foo/b/bar"}
	for n, pattern := range []string{"foo**/bar", "/foo**/bar", "/foo**", "a/foo**/bar", "foo/**/bar", "foo/**", "f**/bar", "/**/bar", "**foo/bar"} {
		top := filepath.Join(t.TempDir(), strconv.Itoa(n))
		gitopstest.Command(t, "", nil, "init", "-q", top)
		gitopstest.Check(t, os.WriteFile(filepath.Join(top, ".gitignore"), []byte(pattern+"\n"), 0o600))
		answers := strings.Split(gitopstest.Input(t, top, nil, strings.Join(paths, "\x00")+"\x00", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"), "\x00")
		p, _ := Parse(pattern)
		for k, path := range paths {
			if want := answers[4*k+2] != ""; p.Matches(path) != want {
				t.Errorf("%s of %s: not %t, as git says", path, pattern, want)
			}
		}
	}
}
