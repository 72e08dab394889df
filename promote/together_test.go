package promote_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestHoldsTogether has several reasons why a commit waits at once. All are listed, in the order of the contract, and each goes by itself.
func TestHoldsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	lock := filepath.Join(w.GitDir, "index.lock")
	wait := func(want ...ledger.Reason) {
		t.Helper()
		w.ageIndex()
		var got []ledger.Reason
		for _, h := range w.cycle().Holds {
			got = append(got, h.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("holds %q, want %q", got, want)
		}
	}
	check(t, os.WriteFile(filepath.Join(w.Top, "a"), []byte("mine\n"), 0o644))
	w.commits("one", "a", "theirs\n")
	wait(ledger.Collision)
	check(t, os.WriteFile(lock, nil, 0o644))
	wait(ledger.Collision, ledger.IndexLocked)
	check(t, os.Remove(lock))
	wait(ledger.Collision)
	w.git("config", "airlock.review", "land")
	wait(ledger.Review)
	w.git("checkout", "-q", "--detach")
	check(t, os.WriteFile(lock, nil, 0o644))
	wait(ledger.DetachedHead, ledger.IndexLocked, ledger.Review)
	check(t, os.Remove(lock))
	wait(ledger.DetachedHead, ledger.Review)
	w.git("checkout", "-q", "main")
	w.git("config", "airlock.review", "off")
	w.git("checkout", "-q", "a")
	wait()
	if w.subjects() != "one" {
		t.Errorf("%q has landed", w.subjects())
	}
}
