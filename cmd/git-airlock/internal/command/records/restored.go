package records

import (
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// promoteRestored promotes the restored workspace of an airlock, as the daemon of a running airlock does. Otherwise status and review would still
// show held commits that the workspace no longer has. before is the outcome before the restore. promoteRestored prints how many commits have
// landed, and how many can no longer land. The restore has succeeded: promoteRestored only prints an error, and returns that of an interrupt.
func promoteRestored(ctx context.Context, s *session.Session, r airlock.Record, before ledger.Outcome) error {
	now, err := drainRestored(ctx, s, r)
	if errors.Is(err, session.ErrCleared) {
		return nil
	}
	if err != nil {
		s.Report.Say("the restored workspace has not been promoted: %s", err)
		s.Report.Hint("git airlock promote")
		return ctx.Err()
	}
	landed := now.Total - before.Total
	if landed > 0 {
		s.Report.Say("landed %s on %s", words.Count(landed, "commit"), r.BranchName())
	}
	if gone := before.Waits - now.Waits - max(0, landed); gone > 0 {
		s.Report.Say("no longer in the workspace: %s that had not landed", words.Count(gone, "commit"))
	}
	return nil
}

// drainRestored promotes the commits of the restored workspace, and returns the outcome.
func drainRestored(ctx context.Context, s *session.Session, r airlock.Record) (ledger.Outcome, error) {
	r, err := s.Current(r)
	if err != nil {
		return ledger.Outcome{}, err
	}
	engine := s.Engine(r)
	defer engine.Close()
	step, end := s.Report.Begin("looking for commits")
	defer end()
	engine.Progress = step
	return engine.Drain(ctx, promote.Options{Unchecked: true, Spared: true})
}
