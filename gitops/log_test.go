package gitops

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/words"
)

// FuzzEscapingWriter escapes any bytes of a log.
func FuzzEscapingWriter(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b[m\tand \x1b[8mhidden\nnext \x1b]0;title\a\n"), true, 7)
	f.Add([]byte("a\r\nb\xff\u202e\n"), false, 1)
	f.Fuzz(func(t *testing.T, log []byte, colour bool, step int) {
		var out bytes.Buffer
		w := &escapingWriter{w: &out, colour: colour}
		for chunk := range slices.Chunk(log, max(step, 1)) {
			if n, err := w.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("%d of %d bytes, %v", n, len(chunk), err)
			}
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := bytes.Count(out.Bytes(), []byte("\n")), bytes.Count(log, []byte("\n")); got != want {
			t.Errorf("%d lines; want %d", got, want)
		}
		for line := range strings.Lines(out.String()) {
			onlyText(t, strings.TrimSuffix(line, "\n"), colour)
		}
	})
}

// TestLongLine writes a long line in pieces of any size. It is shown to its end, as if it were escaped at once.
func TestLongLine(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("\x1b[1;31mé\x1b[m\u202e\xff\x80\x80\x80\x80\x80😀\t", 5000) + "end"
	for _, step := range []int{1, 7, 4096, 40_000, len(line)} {
		var out bytes.Buffer
		w := &escapingWriter{w: &out, colour: true}
		for chunk := range slices.Chunk([]byte(line), step) {
			if _, err := w.Write(chunk); err != nil || len(w.line) > pieceSize+step {
				t.Fatalf("%d bytes wait, %v", len(w.line), err)
			}
		}
		if err := w.flush(); err != nil || out.String() != w.escape(line) {
			t.Errorf("in pieces of %d bytes: %v, %d bytes, want %d", step, err, out.Len(), len(w.escape(line)))
		}
	}
}

// onlyText wants text, tabs and, if colour, colours.
func onlyText(t *testing.T, line string, colour bool) {
	t.Helper()
	for line != "" {
		if sequence := words.ColourSequence(line); colour && sequence != "" {
			line = line[len(sequence):]
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\t' || 0x7f <= r && r < 0xa0 || r == '\u202e' {
			t.Fatalf("%q", line)
		}
		line = line[n:]
	}
}
