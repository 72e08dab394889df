package gitops

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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

// onlyText wants text, tabs and, if colour, colours.
func onlyText(t *testing.T, line string, colour bool) {
	t.Helper()
	for line != "" {
		if sequence := colourSequence(line); colour && sequence != "" {
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
