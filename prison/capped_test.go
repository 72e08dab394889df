package prison_test

import (
	"io"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestCapped writes more than the limit, at once, in parts and through io.Copy, as os/exec does.
func TestCapped(t *testing.T) {
	const text = "0123456789"
	for name, write := range map[string]func(io.Writer) (int64, error){
		"at once": func(w io.Writer) (int64, error) { n, err := io.WriteString(w, text); return int64(n), err },
		"in parts": func(w io.Writer) (int64, error) {
			return io.CopyBuffer(struct{ io.Writer }{w}, strings.NewReader(text), make([]byte, 3))
		},
		"copied": func(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{strings.NewReader(text)}) },
	} {
		for most, want := range map[int]string{0: "", 4: "0123", 10: text, 11: text} {
			c := prison.Capped{Max: most}
			if n, err := write(&c); n != int64(len(text)) || err != nil || c.String() != want || string(c.Bytes()) != want {
				t.Errorf("%s, at most %d: %d bytes, %v, kept %q, want %q", name, most, n, err, c.String(), want)
			}
		}
	}
}
