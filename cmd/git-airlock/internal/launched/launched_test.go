package launched

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// TestChangesAtOnce changes one note by several terminals at once, each of which opens the lock by itself, as a process does. No change may
// be lost.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	of := airlock.Open(&gitops.Repository{CommonDir: t.TempDir()})
	const id = "0001"
	if err := os.MkdirAll(of.Dir(id), 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if err := (Note{Agent: "claude"}).Write(t.Context(), of, id); err != nil {
			t.Fatal(err)
		}
		size := prison.Size{Cols: uint16(n + 1), Rows: 2}
		var done sync.WaitGroup
		for _, change := range []func() error{
			func() error { return Resize(t.Context(), of, id, size) },
			func() error { return Type(t.Context(), of, id, "^C") },
			func() error { return Type(t.Context(), of, id, `^\`) },
		} {
			done.Go(func() {
				if err := change(); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		got, _, err := Read(of.Dir(id))
		if err != nil || got.Agent != "claude" || got.Size != size || !slices.Contains(got.Typed, "^C") || !slices.Contains(got.Typed, `^\`) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if err := Type(t.Context(), of, "0002", "^C"); err != nil {
		t.Errorf("in an airlock that was cleared: %v", err)
	}
}
