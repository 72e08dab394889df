package checkpoint

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// fromScratch returns the ids of the workspace that a new store computes.
func (w *world) fromScratch() IDs {
	w.Helper()
	store, err := OpenStore(filepath.Join(w.TempDir(), "scratch"), DefaultBytes)
	if err != nil {
		w.Fatal(err)
	}
	defer store.Close()
	top, changing, err := store.present(w.Context(), w.Client, Options{Opens: true})
	if err = errors.Join(err, shut(w.Client, top)); err != nil || len(changing) > 0 {
		w.Fatal(err, changing)
	}
	r, err := encode(top, nameOnly)
	if err != nil {
		w.Fatal(err)
	}
	return r.ids()
}

// TestSameAsFromScratch compares the ids of checkpoints, which do not read unchanged files again, with those of a new store.
// AIRLOCK_CHECKPOINT_CYCLES sets the number of cycles.
func TestSameAsFromScratch(t *testing.T) {
	cycles := 100
	if n, err := strconv.Atoi(os.Getenv("AIRLOCK_CHECKPOINT_CYCLES")); err == nil {
		cycles = n
	}
	const perWorld = 50
	for seed := range (cycles + perWorld - 1) / perWorld {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 23))
			w := newWorld(t, DefaultBytes)
			for range perWorld {
				damage(t, r, w.dir, 1+r.IntN(10))
				if got, want := w.take("").IDs, w.fromScratch(); got != want {
					t.Fatalf("ids %v, from scratch %v", got, want)
				}
			}
		})
	}
}
