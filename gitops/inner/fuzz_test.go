package inner

import (
	"context"
	"errors"
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

// TestNamelessObstacles leaves out the empty paths that a program of the agent may print in place of the script's.
func TestNamelessObstacles(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"": "", "\x00": "", "\x00\x00a\x00\x00b\x00": "a b", "a\x00cut": "a"} {
		w := Workspace{Dir: "/work", Run: func(_ context.Context, p Process) (int, error) {
			_, err := p.Stdout.Write([]byte(answer))
			return int(Uncommitted), err
		}}
		refused, ok := errors.AsType[*Refused](w.Advance(t.Context(), "1", "2"))
		if !ok || strings.Join(refused.Paths, " ") != want || refused.Operation() != "" {
			t.Errorf("%q: %+v, want the paths %q", answer, refused, want)
		}
	}
}
