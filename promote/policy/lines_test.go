package policy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestAddedRuns(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"", "a\nb\n", `1:"a\nb\n"`},
		{"a\n", "a\n", ""},
		{"a\nb\n", "a\r\nb\r\n", ""},
		{"a\nb", "a\nb\n", ""},
		{"a\nc\n", "a\nb\nc\n", `2:"b\n"`},
		{"a\nb\nc\n", "a\nc\n", ""},
		{"a\nb\nc\nd\n", "d\na\nb\nc\n", ""},
		{"a\nb\nc\nd\n", "a\nx\nc\ny\n", `2:"x\n" 4:"y\n"`},
		{"a\naa\n", "a\nba\n", `2:"ba\n"`},
		{"one\ntwo", "one\ntwo three", `2:"two three"`},
	} {
		var got []string
		for _, r := range addedRuns([]byte(c.old), []byte(c.new)) {
			got = append(got, fmt.Sprintf("%d:%q", r.line, r.text))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q to %q: %s, want %s", c.old, c.new, s, c.want)
		}
	}
}

// TestAddedRunsMissNothing compares random contents. Each line that the old content does not contain must be in a
// run, and each run must be at its place in the new content.
func TestAddedRunsMissNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() []byte {
		var b []byte
		for range r.IntN(12) {
			b = append(b, strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(3))...)
			b = append(b, []string{"\n", "\r\n", "\n", ""}[r.IntN(4)]...)
		}
		return b
	}
	for range 20000 {
		old, new := text(), text()
		covered := map[int]bool{}
		lines := slices.Collect(bytes.Lines(new))
		for _, run := range addedRuns(old, new) {
			n := run.line
			for line := range bytes.Lines(run.text) {
				if n > len(lines) || !bytes.Equal(lines[n-1], line) {
					t.Fatalf("%q to %q: the run %d:%q", old, new, run.line, run.text)
				}
				covered[n] = true
				n++
			}
		}
		had := map[string]bool{}
		for line := range bytes.Lines(old) {
			had[string(trimEnd(line))] = true
		}
		for n, line := range lines {
			if !had[string(trimEnd(line))] && !covered[n+1] {
				t.Fatalf("%q to %q: line %d is in no run", old, new, n+1)
			}
		}
	}
}
