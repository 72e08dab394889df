package inner

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
)

// FuzzWorkspace reads any answers of a git inside a prison.
func FuzzWorkspace(f *testing.F) {
	f.Add([]byte("4b825dc642cb6eb9a060e54bf8d69288fbee4904"+" refs/heads/main\n"), 0)
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
func isOID(t *testing.T, id gitops.OID) {
	t.Helper()
	if _, err := gitops.ParseOID(string(id)); id != "" && err != nil {
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
