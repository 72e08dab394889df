package terminal

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestText compares what is shown after some output with what xterm shows. The screen has 10 columns and 4 rows.
func TestText(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"nothing", "", ""},
		{"lines", "one\r\ntwo\r\n", "one\ntwo\n"},
		{"colours and a title", "\x1b[31mred\x1b[0m\x1b]0;title\a!", "red!\n"},
		{"a title that ST ends", "\x1b]0;title\x1b\\shown", "shown\n"},
		{"a sequence without an end", "shown\x1b[31", "shown\n"},
		{"a line that is written again", "50%\r100%", "100%\n"},
		{"backspace and tab", "ab\bc\td", "ac      d\n"},
		{"a long line stays one line", "0123456789abc\r\nx", "0123456789abc\nx\n"},
		{"no wrap", "\x1b[?7l0123456789abc", "012345678c\n"},
		{"lines above the screen", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "1\n2\n3\n4\n5\n6\n"},
		{"positions", "\x1b[2;3Hb\x1b[Ha\x1b[9;99Hc", "a\n  b\n\n         c\n"},
		{"moves", "\x1b[3Bx\x1b[2A\x1b[2Cy\x1b[9Dz\x1b[Fw\x1b[Ev\x1b[5G5\x1b[4d4", "w\nv  y5\n\nx    4\n"},
		{"erase in lines", "abcdef\x1b[3D\x1b[K\x1b[2;1Habc\x1b[2D\x1b[1K\x1b[3;1Habc\x1b[2K\x1b[4;1Habcd\x1b[1;2H\x1b[X", "a c\n  c\n\nabcd\n"},
		{"a screen that is drawn again", "old\x1b[2J\x1b[3J\x1b[Hnew", "new\n"},
		{"a cleared screen is kept above", "old\x1b[2J\x1b[Hnew", "old\nnew\n"},
		{"erase below and above", "1\r\n2\r\n3\x1b[2;1H\x1b[J\x1b[1J\x1b[3;1Hx", "\n\nx\n"},
		{"insert and delete", "abc\x1b[2G\x1b[2@\x1b[2;1Habc\x1b[2G\x1b[P", "a  bc\nac\n"},
		{"insert and delete lines", "1\r\n2\r\n3\x1b[2;1H\x1b[L\x1b[1;1H\x1b[M", "\n2\n3\n"},
		{"a region scrolls", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n5", "1\n3\n5\n4\n"},
		{"lines above a region", "1\r\n2\r\n3\r\n4\x1b[1;2r\x1b[2;1H\r\n5\x1b[r", "1\n2\n5\n3\n4\n"},
		{"reverse index", "1\r\n2\x1b[H\x1bM0", "0\n1\n2\n"},
		{"repeated", "a\x1b[3b", "aaaa\n"},
		{"saved", "a\x1b7bc\x1b8d\x1b[s\x1b[4;1He\x1b[uf", "adf\n\n\ne\n"},
		{"full screen", "shell\x1b[?1049h\x1b[2J\x1b[Hprogram", "shell\nprogram\n"},
		{"after full screen", "shell\r\n\x1b[?1049h\x1b[Hprogram\x1b[?1049lend", "program\nshell\nend\n"},
		{"wide", "日本語日本語", "日本語日本語\n"},
		{"marks", "e\u0301!", "e\u0301!\n"},
		{"invisible characters", "a\u200d\u2800b", "a b\n"},
		{"bytes that are no text", "a\x80b\u202e", "a\\x80b\n"},
		{"reset", "old\x1b[2;3r\x1bcnew", "old\nnew\n"},
		{"character sets", "\x1b(B\x1b)0\x1b#8a", "a\n"},
	} {
		if got := Text([]byte(c.output), 10, 4); got != c.want {
			t.Errorf("%s: %q is shown as\n%q, want\n%q", c.name, c.output, got, c.want)
		}
	}
}

// TestBounds checks that hostile output takes no more memory and time than its size allows.
func TestBounds(t *testing.T) {
	const repeated = 20_000
	for _, output := range []string{"\x1b[999Gx\n", "\x1b[9999S", "\x1b[9999T", "\x1b[9999b", "\x1b[H\x1b[9999L", "\x1b[9999@", "\x1b[2J", "e\u0301", "\x1b[?1049h\x1b[?1049l", "\x1b[", "\x1b]", "\n"} {
		if text := Text([]byte(strings.Repeat(output, repeated)), 9999, 9999); len(text) > maxAbove+4*maxWidth*maxHeight {
			t.Errorf("%q: %d bytes", output, len(text))
		}
	}
}

// TestBlank checks that output which scrolls blank screens away is shown as at most a screen of blank lines, also between texts.
func TestBlank(t *testing.T) {
	const height = 24
	blank := strings.Repeat("\n", height)
	for output, want := range map[string]string{
		"\x1b[24S":            blank,
		"\x1b[9999S":          blank,
		"\n":                  blank,
		"\x1b[H\x1b[9999M":    blank,
		"a\r\x1b[24S\x1b[24S": strings.Repeat("a\n"+blank, 1000),
	} {
		text := Text([]byte(strings.Repeat(output, 1000)), 80, height)
		if strings.TrimLeft(text, "\n") != strings.TrimLeft(want, "\n") || strings.Count(text, "\n") > strings.Count(want, "\n") {
			t.Errorf("%q: %d lines", output, strings.Count(text, "\n"))
		}
	}
	if lines := strings.Count(Text([]byte(strings.Repeat("x\r\n", 1<<20)), 80, height), "\n"); lines > maxAbove/lineCost+height {
		t.Errorf("%d lines", lines)
	}
}

// FuzzText checks that output never breaks the screen, and that what is shown does nothing to a terminal.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"a\r\nb\x1b[2J\x1b[3;4Hc", "\x1b[?1049h\x1b[1;3r\x1bM\x1b[5L\x1b[3M\x1b[4P\x1b[4@\x1b[3X\x1b[2K\x1b[?1049l", "\x1b]0;t\a日本\x1b[9b\tx\x1b[S\x1b[2T"} {
		f.Add([]byte(seed), uint8(10), uint8(4))
	}
	f.Fuzz(func(t *testing.T, output []byte, width, height uint8) {
		s := newTerminal(int(width), int(height))
		s.write(output)
		if s.x < 0 || s.x >= s.width || s.y < 0 || s.y >= s.height || len(s.rows) != s.height || s.top >= s.bottom && s.height > 1 {
			t.Fatalf("the cursor is at %d, %d of %d, %d", s.x, s.y, s.width, s.height)
		}
		for _, r := range s.rows {
			if len(r.cells) > s.width {
				t.Fatalf("a row has %d cells of %d", len(r.cells), s.width)
			}
		}
		text := Text(output, int(width), int(height))
		for _, r := range text {
			if r != '\n' && (gitops.Hidden(r) || unicode.IsControl(r)) {
				t.Fatalf("%q shows %q", output, r)
			}
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q is shown as %q", output, text)
		}
	})
}
