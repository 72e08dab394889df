package session

import (
	"context"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checking"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
)

// checker runs airlock.check for the engine of an airlock.
type checker struct {
	runner checking.Runner
	record airlock.Record
}

func (s *Session) checker(r airlock.Record) checker {
	return checker{checking.Runner{Prisons: s.Prisons(), Config: s.Config, Now: s.Now}, r}
}

// System implements [promote.Checker].
func (c checker) System(ctx context.Context) (string, error) { return c.runner.System(ctx, c.record) }

// Run implements [promote.Checker]. It reads the user's settings again, because they may have changed since the daemon began.
func (c checker) Run(ctx context.Context, w checks.Wanted) (found checks.Result, err error) {
	if c.runner.Config, err = c.runner.Prisons.Repo.Config(ctx); err != nil {
		return found, err
	}
	c.runner.Prisons.Config = c.runner.Config
	return c.runner.Run(ctx, c.record, w.Check, w.Commit, false, nil)
}
