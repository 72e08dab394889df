package pause

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops/land"
)

// TestCommandAtWork checks when a hold names a command that landings wait for.
func TestCommandAtWork(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	stash := fmt.Errorf("land: %w", &land.CommandError{PID: 7, Subcommand: "stash"})
	var a Command
	for _, step := range []struct {
		err   error
		after time.Duration
		lasts bool
	}{
		{nil, 0, false},
		{stash, time.Second, false},
		{stash, time.Second + briefCommand - 1, false},
		{stash, time.Second + briefCommand, true},
		{&land.CommandError{PID: 8, Subcommand: "stash"}, 3 * time.Second, false}, // another one
		{&land.CommandError{PID: 8, Subcommand: "stash"}, 5 * time.Second, true},
		{&land.CommandError{PID: 9, Subcommand: "commit", Waits: true}, 5 * time.Second, true}, // it cannot end
		{errors.New("other"), 6 * time.Second, false},
		{&land.CommandError{PID: 8, Subcommand: "stash"}, 9 * time.Second, false},
	} {
		now := begun.Add(step.after)
		if a = a.After(step.err, now); a.Lasts(now) != step.lasts {
			t.Errorf("%v after %v: lasts is %v", step.err, step.after, !step.lasts)
		}
	}
}
