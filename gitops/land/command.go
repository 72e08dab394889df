package land

import (
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// commit is the subcommand of [CommandError] that reads the index without its lock.
const commit = "commit"

// CommandError names a git command of the user that a landing would make fail half-way, or that would undo the landing. It wraps
// [ErrUnfinished].
type CommandError struct {
	PID        int
	Subcommand string
	Waits      bool // for this process, which runs in a hook or an editor of the command
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("git %s is at work, process %d", e.Subcommand, e.PID)
}

// Unwrap implements the interface of [errors.Is].
func (e *CommandError) Unwrap() error { return ErrUnfinished }

// unhindered returns a *[CommandError] if a command of the user is running that would fail half-way if a landing took the lock of the index now.
func unhindered(r *gitops.Repository) error {
	if c := running(r.Top); c != nil {
		return c
	}
	return nil
}

// commitPatience bounds the time for which a landing keeps the lock of the index because a git commit is running.
const commitPatience = 2 * time.Second

// awaitCommits waits until no git commit is running, because it may have read the index before a landing replaced it. The caller holds the lock of
// the index, so that such a git commit fails. Without the lock, it would write the old index back.
func awaitCommits(r *gitops.Repository) {
	for end := time.Now().Add(commitPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c := running(r.Top); c == nil || c.Subcommand != commit {
			return
		}
	}
}
