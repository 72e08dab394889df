package quarantine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// seedDelta returns a base and a valid delta for it.
func seedDelta(t testing.TB, r *rand.Rand) (base, delta []byte) {
	t.Helper()
	base = make([]byte, 1+r.IntN(5000))
	for i := range base {
		base[i] = byte('a' + r.IntN(3))
	}
	made := bytes.Clone(base)
	for range r.IntN(6) {
		at := r.IntN(len(made))
		made = append(append(bytes.Clone(made[:at]), []byte("some new text")...), made[min(len(made), at+r.IntN(100)):]...)
	}
	return base, packfile.DiffDelta(base, made)
}

// same compares applyDelta with go-git's function, and reports whether the delta was applied. Both refuse it, or return
// the same object.
func same(t *testing.T, base, delta []byte) (applied bool) {
	t.Helper()
	got, err := applyDelta(base, delta)
	want, theirs := packfile.PatchDelta(base, delta)
	if (err == nil) != (theirs == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("base %q, delta %q: %q, %v, go-git: %q, %v", base, delta, got, err, want, theirs)
	}
	return err == nil
}

// TestDeltasAreAppliedAsByGoGit applies valid and damaged deltas.
func TestDeltasAreAppliedAsByGoGit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	applied, refused := 0, 0
	for range 4000 {
		base, delta := seedDelta(t, r)
		if !same(t, base, delta) {
			t.Fatalf("a valid delta is refused: base %q, delta %q", base, delta)
		}
		delta[r.IntN(len(delta))] ^= byte(1 << r.IntN(8))
		if same(t, base, delta[:len(delta)-r.IntN(2)]) {
			applied++
		} else {
			refused++
		}
	}
	if applied == 0 || refused == 0 {
		t.Errorf("of the damaged deltas, %d were applied and %d refused", applied, refused)
	}
}
