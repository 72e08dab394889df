package launched

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

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
			func() error { return typed(t.Context(), of, id, "^C") },
			func() error { return typed(t.Context(), of, id, `^\`) },
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

// TestWaits changes the note while another process holds the lock for longer than a key may wait. The key is given up, and the other changes
// wait until the lock is free, or until their context ends.
func TestWaits(t *testing.T) {
	t.Parallel()
	of := airlock.Open(&gitops.Repository{CommonDir: t.TempDir()})
	const id = "0001"
	if err := os.MkdirAll(of.Dir(id), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Note{Agent: "claude"}).Write(t.Context(), of, id); err != nil {
		t.Fatal(err)
	}
	unlock, err := of.LockFile(t.Context(), id, lockName)
	if err != nil {
		t.Fatal(err)
	}
	size := prison.Size{Cols: 3, Rows: 2}
	resized := make(chan error, 1)
	go func() { resized <- Resize(t.Context(), of, id, size) }()
	if err := Type(t.Context(), of, id, "^C"); !errors.Is(err, airlock.ErrBusy) {
		t.Errorf("a key: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := (Note{}).Write(short, of, id); !errors.Is(err, airlock.ErrBusy) {
		t.Errorf("a note whose context ends: %v", err)
	}
	select {
	case err := <-resized:
		t.Errorf("did not wait for the lock: %v", err)
	default:
		unlock()
		if err := <-resized; err != nil {
			t.Error(err)
		}
	}
	if got, _, err := Read(of.Dir(id)); err != nil || got.Agent != "claude" || got.Size != size || got.Typed != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
