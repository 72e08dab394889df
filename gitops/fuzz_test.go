package gitops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzInnerLook lets git inside a prison answer anything.
func FuzzInnerLook(f *testing.F) {
	f.Add([]byte(someTree+" refs/heads/main\n"), 0)
	f.Add([]byte("refs/heads/main\n"), 0)
	f.Add([]byte("?? a\x00 M b\x00"), 128)
	f.Fuzz(func(t *testing.T, answer []byte, status int) {
		w := Workspace{Dir: "/work", Run: func(_ context.Context, p Process) (int, error) {
			_, err := p.Stdout.Write(answer)
			p.Stderr.Write(answer)
			return status, err
		}}
		refs, err := w.Branches(t.Context())
		for _, r := range refs {
			isOID(t, r.Commit)
		}
		readable(t, err)
		id, err := w.Resolve(t.Context(), "main")
		isOID(t, id)
		readable(t, err)
		id, err = w.Main(t.Context())
		isOID(t, id)
		readable(t, err)
		_, err = w.Count(t.Context(), "main")
		readable(t, err)
		_, err = w.Uncommitted(t.Context())
		readable(t, err)
	})
}

// isOID wants a name of an object or none.
func isOID(t *testing.T, id OID) {
	t.Helper()
	if _, err := ParseOID(string(id)); id != "" && err != nil {
		t.Error(err)
	}
}

// readable wants an error, if there is one, that can be shown and is not endless.
func readable(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); len(text) > 64<<10 || strings.ContainsFunc(text, func(r rune) bool { return r == '\x1b' || r == '\a' || r == utf8.RuneError }) {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

// FuzzEscapingWriter lets a log say anything.
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

// FuzzCapped writes whatever to what bounds the output of git.
func FuzzCapped(f *testing.F) {
	f.Add([]byte("head and tail"), 5)
	f.Fuzz(func(t *testing.T, said []byte, limit int) {
		limit = max(limit, 0) % (1 << 20)
		var out bytes.Buffer
		_, err := io.Copy(&cappedWriter{w: &out, left: int64(limit)}, struct{ io.Reader }{bytes.NewReader(said)})
		if out.Len() > limit || !bytes.HasPrefix(said, out.Bytes()) {
			t.Errorf("%d bytes came through; at most %d", out.Len(), limit)
		}
		if err == nil && out.Len() != len(said) {
			t.Errorf("%d of %d bytes, and no error", out.Len(), len(said))
		}
		var stderr Stderr
		if _, err := stderr.Write(said); err != nil && !errors.Is(err, io.ErrShortWrite) {
			t.Error(err)
		}
		readable(t, errors.New(stderr.String()))
	})
}
