package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestGrownFile makes a file very large between the walk and the reading. The file is not read, and later checkpoints are made.
func TestGrownFile(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	path := filepath.Join(w.dir, "file")
	if err := os.WriteFile(path, []byte("small"), 0o600); err != nil {
		t.Fatal(err)
	}
	top, err := walk(w.Client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<43); err != nil {
		t.Fatal(err)
	}
	p, err := packInto(io.Discard, nil, DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(t.Context(), w.Client, []unread{{"file", top.child("file")}}, p); !errors.Is(err, ErrTooLarge) {
		t.Errorf("fill: %v", err)
	}
	if _, _, err := w.store.present(t.Context(), serve(t, w.dir), Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("present: %v", err)
	}
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Take(t.Context(), serve(t, w.dir), Options{Now: begin}); err != nil {
		t.Error(err)
	}
}
