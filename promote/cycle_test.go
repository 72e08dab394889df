package promote

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// A ref that moved under a cycle is looked at once more, and is a failure the second time in a row.
func TestExcuse(t *testing.T) {
	t.Parallel()
	e := &Engine{Store: airlock.Open(&gitops.Repository{CommonDir: t.TempDir()})}
	moved, broken := fmt.Errorf("notes: %w", gitops.ErrRefMoved), errors.New("broken")
	for i, step := range []struct{ of, want error }{{moved, nil}, {nil, nil}, {moved, nil}, {moved, moved}, {nil, nil}, {moved, nil}, {broken, broken}} {
		c := &cycle{Engine: e, now: time.Now()}
		if got := c.excuse(step.of); !errors.Is(got, step.want) || (got == nil) != (step.want == nil) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		if again := c.outcome.Retry > 0; again != (step.of != nil && step.want == nil) {
			t.Errorf("step %d: looked at again: %t", i, again)
		}
	}
	c := &cycle{Engine: e, now: time.Now()}
	if err := c.excuse(fmt.Errorf("notes: %w", &gitops.LockedError{Lock: "refs/x.lock"})); err != nil || !c.held(IndexLocked) {
		t.Errorf("a lock: %v, %+v", err, c.holds)
	}
}
