package checkpoint

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/git-airlock/git-airlock/prison/native/inotify"
)

// TestCheckpointOfTouchedFolders makes checkpoints that list only touched folders, and compares their ids with those of a new store.
// AIRLOCK_CHECKPOINT_CYCLES sets the number of cycles.
func TestCheckpointOfTouchedFolders(t *testing.T) {
	cycles := 300
	if n, err := strconv.Atoi(os.Getenv("AIRLOCK_CHECKPOINT_CYCLES")); err == nil {
		cycles = n
	}
	const perWorld = 100
	partial := 0
	for seed := range (cycles + perWorld - 1) / perWorld {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 24))
			w := newWorld(t, DefaultBytes)
			recent := &Recent{}
			hints := watched(t, w.dir)
			for range perWorld {
				damage(t, r, w.dir, r.IntN(8))
				touched, err := hints.Touched()
				if err != nil {
					t.Fatal(err)
				}
				taken, err := w.store.Take(t.Context(), w.Client, Options{Now: begin, Recent: recent, Hinted: true, Touched: touched})
				if err != nil {
					t.Fatal(err)
				}
				if taken.Partial {
					partial++
				}
				if want := w.fromScratch(); taken.IDs != want {
					t.Fatalf("ids %v, from scratch %v, partial %t, touched %q", taken.IDs, want, taken.Partial, touched)
				}
				if r.IntN(20) == 0 { // a process without a Recent makes a checkpoint in between
					damage(t, r, w.dir, 3)
					if err := w.store.Save(recent); err != nil {
						t.Fatal(err)
					}
					w.take("")
				}
			}
		})
	}
	if partial < cycles/2 {
		t.Errorf("%d of %d checkpoints were partial", partial, cycles)
	}
}

func watched(t *testing.T, dir string) *inotify.Tree {
	t.Helper()
	hints, err := inotify.Watch(dir, func(f func()) { f() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hints.Close)
	return hints
}

// TestHintedRace makes checkpoints while a program changes files and moves folders. When the program has ended, the next checkpoint must
// be exact, although it lists only touched folders.
func TestHintedRace(t *testing.T) {
	for seed := range 10 {
		r := rand.New(rand.NewPCG(uint64(seed), 25))
		w := newWorld(t, DefaultBytes)
		recent, hints := &Recent{}, watched(t, w.dir)
		damage(t, r, w.dir, 60)
		take := func() (Taken, error) {
			touched, err := hints.Touched()
			if err != nil {
				t.Fatal(err)
			}
			taken, err := w.store.Take(t.Context(), w.Client, Options{Now: begin, Recent: recent, Hinted: true, Touched: touched})
			if err != nil {
				*recent = Recent{}
			}
			return taken, err
		}
		ended := make(chan bool)
		go func() {
			defer close(ended)
			for range 40 {
				damage(t, r, w.dir, 10)
			}
		}()
		for racing := true; racing; {
			select {
			case <-ended:
				racing = false
			default:
			}
			take() // an error is accepted, since files vanish
		}
		taken, err := take()
		if err != nil {
			t.Fatal(err)
		}
		if want := w.fromScratch(); taken.IDs != want {
			t.Fatalf("seed %d: ids %v, from scratch %v, partial %t", seed, taken.IDs, want, taken.Partial)
		}
	}
}

// TestSecondName changes a file through its name in another folder. Only the folder with the used name is reported.
func TestSecondName(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	at := func(name string) string { return filepath.Join(w.dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(at("a"), 0o700))
	must(os.Mkdir(at("b"), 0o700))
	must(os.WriteFile(at("a/one"), []byte("1"), 0o600))
	recent, hints := &Recent{}, watched(t, w.dir)
	check := func() {
		t.Helper()
		touched, err := hints.Touched()
		must(err)
		taken, err := w.store.Take(t.Context(), w.Client, Options{Now: begin, Recent: recent, Hinted: true, Touched: touched})
		must(err)
		if want := w.fromScratch(); taken.IDs != want {
			t.Fatalf("ids %v, from scratch %v, partial %t, touched %q", taken.IDs, want, taken.Partial, touched)
		}
	}
	check()
	must(os.Link(at("a/one"), at("b/two")))
	check()
	must(os.WriteFile(at("b/two"), []byte("2"), 0o600))
	check()
	must(os.WriteFile(at("a/one"), []byte("3"), 0o600))
	must(os.Rename(at("b"), at("a/b")))
	check()
	must(os.WriteFile(at("a/b/two"), []byte("4"), 0o600))
	check()
}
