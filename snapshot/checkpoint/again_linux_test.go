package checkpoint

import (
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestPlanAgain interrupts random restores, damages the workspace once more, as an agent may before the second try, and restores the
// rest. The result must be that of an uninterrupted restore, and the checkpoint of the first try must undo both.
func TestPlanAgain(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 23))
			w := newWorld(t, DefaultBytes)
			o := RestoreOptions{Options: Options{Message: "before the restore", Now: begin, Opens: true}}
			for range 4 {
				damage(t, r, w.dir, 15)
				taken := w.take("a state")
				before := listing(t, w.dir)
				damage(t, r, w.dir, 15)
				damaged := listing(t, w.dir)
				first, err := w.store.Plan(t.Context(), w.Client, taken.Checkpoint, o)
				if err != nil {
					t.Fatal(err)
				}
				done := first.operate[:r.IntN(len(first.operate)+1)]
				err = w.Apply(done, func(n int) (io.ReadCloser, error) {
					_, _, content, err := w.store.open(first.blobs[n])
					return content, err
				}, func(n int, reason string) { t.Errorf("%q: %s", done[n].Path, reason) })
				if err != nil {
					t.Fatal(err)
				}
				damage(t, r, w.dir, r.IntN(10))
				again, err := w.store.PlanAgain(t.Context(), w.Client, first.Before.Checkpoint, taken.Checkpoint, o)
				if err != nil {
					t.Fatal(err)
				}
				if restored, err := w.store.Restore(t.Context(), w.Client, again); err != nil {
					t.Fatalf("%v: %q", err, restored.Failed)
				}
				if after := listing(t, w.dir); after != before {
					t.Fatalf("restored:\n%s", difference(after, before))
				}
				w.restore(first.Before.Checkpoint, RestoreOptions{})
				if after := listing(t, w.dir); after != damaged {
					t.Fatalf("undone:\n%s", difference(after, damaged))
				}
			}
		})
	}
}
