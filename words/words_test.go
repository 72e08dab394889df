package words

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 commits", 1: "1 commit", 2: "2 commits"} {
		if got := Count(n, "commit"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestCut checks that a cut text has the requested length, and is not cut inside a character.
func TestCut(t *testing.T) {
	text := strings.Repeat("é", 50)
	for most := range 120 {
		clipped, short := Clip(text, most), Shorten(text, most)
		if !utf8.ValidString(clipped) || len(clipped) > max(3, most) || len(clipped) < min(100, most-1) || Clip(clipped, max(3, most)) != clipped {
			t.Errorf("Clip(%d) = %q", most, clipped)
		}
		if !utf8.ValidString(short) || most > 3 && utf8.RuneCountInString(short) != min(50, most) {
			t.Errorf("Shorten(%d) = %q", most, short)
		}
	}
}

// FuzzMatches compares patterns with a simple definition.
func FuzzMatches(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 12 {
			t.Skip("the definition takes exponential time")
		}
		if got := Matches(pattern, text); got != defined(pattern, text) {
			t.Errorf("Matches(%q, %q) = %v", pattern, text, got)
		}
	})
}

func defined(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return defined(pattern[1:], text) || text != "" && defined(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && defined(pattern[1:], text[1:])
}

// TestOneLine writes errors in one line. Text of others that has lines of its own is not changed.
func TestOneLine(t *testing.T) {
	t.Parallel()
	a, b, foreign := errors.New("a"), errors.New("b"), errors.New("x\ny")
	for want, err := range map[string]error{
		"a":            a,
		"a; b":         errors.Join(a, b, a),
		"step: a; b":   fmt.Errorf("step: %w", errors.Join(a, errors.Join(b, a))),
		"x\ny; a":      errors.Join(foreign, a),
		"a: b":         fmt.Errorf("%w: %w", a, b),
		"one: a; b":    errors.Join(fmt.Errorf("one: %w", a), b),
		"after x\ny (": fmt.Errorf("after %w (", foreign),
	} {
		if got := OneLine(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestIndefinite(t *testing.T) {
	for noun, want := range map[string]string{"rebase": "a rebase", "am": "an am", "": "a "} {
		if got := Indefinite(noun); got != want {
			t.Errorf("%q: %q, want %q", noun, got, want)
		}
	}
}

func TestList(t *testing.T) {
	for want, texts := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := List(texts, 2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCutComment(t *testing.T) {
	for line, want := range map[string][2]string{
		"":                              {"", ""},
		"git status":                    {"git status", ""},
		"git stash  # or commit":        {"git stash", "or commit"},
		"a 'b  # c'":                    {"a 'b  # c'", ""},
		"a 'b  # c'  # d":               {"a 'b  # c'", "d"},
		`a "b  # c" \'  # d 'e  # f`:    {`a "b  # c" \'`, "d 'e  # f"},
		`a 'b'\''  # c'  # d`:           {`a 'b'\''  # c'`, "d"},
		`a "b \"  # c"  # d`:            {`a "b \"  # c"`, "d"},
		ShellQuote(`'  # \'  # `) + "x": {ShellQuote(`'  # \'  # `) + "x", ""},
	} {
		if command, comment := CutComment(line); command != want[0] || comment != want[1] {
			t.Errorf("%q: %q and %q, want %q", line, command, comment, want)
		}
	}
}
