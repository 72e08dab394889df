package words

import (
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

// TestCut checks that a text that was cut has the length that was asked for, and is cut at a character.
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
