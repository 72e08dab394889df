package runs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestLongTerminal checks that the record says how much of a terminal's output it does not have.
func TestLongTerminal(t *testing.T) {
	dir := t.TempDir()
	out := newTimed(dir, prison.Size{}, time.Now)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 6 {
		out.Write(piece)
	}
	left := readLeft(filepath.Join(dir, castName))
	if left == 0 || left%(1<<20) != 0 || left >= 6<<20 {
		t.Fatalf("%d bytes are left out", left)
	}
	content, err := os.ReadFile(filepath.Join(dir, castName))
	if err != nil {
		t.Fatal(err)
	}
	header, events, err := record.DecodeCast(content)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, e := range events {
		kept += len(e.Text)
	}
	if int64(kept)+left != 6<<20 {
		t.Errorf("%d bytes are kept and %d left out", kept, left)
	}
	g := gathering{files: map[string][]byte{}, about: map[string]record.File{}}
	if err := g.cast(header, events, left); err != nil || g.about[record.TerminalName].Cut < left || g.about[record.TerminalName].Note == "" {
		t.Errorf("the record has %+v, %v", g.about[record.TerminalName], err)
	}
}
