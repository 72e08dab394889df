package promote

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestHoldOrError moves a ref during a cycle: the first time, the next cycle reads it again. The second time in a row, it
// is a failure.
func TestHoldOrError(t *testing.T) {
	t.Parallel()
	e := &Engine{Store: airlock.Open(&gitops.Repository{CommonDir: t.TempDir()})}
	var before ledger.Outcome
	moved, broken := fmt.Errorf("notes: %w", gitops.ErrRefMoved), errors.New("broken")
	for i, step := range []struct{ of, want error }{{moved, nil}, {nil, nil}, {moved, nil}, {moved, moved}, {nil, nil}, {moved, nil}, {broken, broken}} {
		outcome, got := e.holdOrError(before, step.of, before, time.Now())
		if !errors.Is(got, step.want) || (got == nil) != (step.want == nil) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		if again := outcome.Retry > 0; again != (step.of != nil && step.want == nil) {
			t.Errorf("step %d: read again: %t", i, again)
		}
	}
	outcome, err := e.holdOrError(before, fmt.Errorf("notes: %w", &gitops.LockedError{Lock: "refs/x.lock"}), before, time.Now())
	if err != nil || !outcome.Held(ledger.IndexLocked) {
		t.Errorf("a lock: %v, %+v", err, outcome.Holds)
	}
}

// TestFirstWrongLimit checks that of two wrong settings always the same one is reported.
func TestFirstWrongLimit(t *testing.T) {
	t.Parallel()
	for range 100 {
		var wrong *gitops.SettingError
		_, err := ReadSettings(gitops.Config{"airlock.limit.time": "x", "airlock.limit.blob": "x", "airlock.limit.pack": "x"})
		if !errors.As(err, &wrong) || wrong.Key != "airlock.limit.blob" {
			t.Fatalf("%v", err)
		}
	}
}
