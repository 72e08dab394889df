package land

import (
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
)

// CommandError names a git command of the user that a landing would make fail half-way. It wraps [ErrUnsettled].
type CommandError struct {
	PID        int
	Subcommand string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("git %s is at work, process %d", e.Subcommand, e.PID)
}

// Unwrap implements the interface of [errors.Is].
func (e *CommandError) Unwrap() error { return ErrUnsettled }

// unhindered returns a *[CommandError] if the lock of the index would make a command of the user fail half-way.
func unhindered(r *gitops.Repository) error {
	if c := running(r.Top); c != nil {
		return c
	}
	return nil
}
