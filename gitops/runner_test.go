package gitops

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzCapped writes whatever to what bounds the output of git.
func FuzzCapped(f *testing.F) {
	f.Add([]byte("head and tail"), 5)
	f.Fuzz(func(t *testing.T, said []byte, limit int) {
		limit = max(limit, 0) % (1 << 20)
		var out bytes.Buffer
		_, err := io.Copy(CapOutput(&out, int64(limit)), struct{ io.Reader }{bytes.NewReader(said)})
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
		if text := stderr.String(); len(text) > 64<<10 || strings.ContainsAny(text, "\x1b\a") {
			t.Errorf("%d bytes: %.200q", len(text), text)
		}
	})
}
