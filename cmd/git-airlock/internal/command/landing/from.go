package landing

import (
	"context"
	"errors"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// promoteFrom promotes the commits of the inner branch or commit that --from names. It refuses to take landed commits off that the agent's
// main has. If main does not have what has landed, promoteFrom prints how the agent's next commit keeps that.
func promoteFrom(ctx context.Context, s *session.Session, r airlock.Record, wanted session.Promotion) error {
	from := wanted.Options.From
	apart, operation, err := besides(ctx, s, r, from)
	if off, ok := errors.AsType[*hold.TakesOffError](err); ok {
		return &environment.Refusal{Text: "--from: " + off.Error(), Next: ledger.WithStart([]string{hold.Merge(from, operation)}, runs(ctx, s, r))}
	}
	before, _ := ledger.TotalLanded(s.Store.Dir(r.ID)) // Promote reports any other error
	err = s.Promote(ctx, r, wanted)
	if landed, _ := ledger.TotalLanded(s.Store.Dir(r.ID)); err == nil && apart > 0 && landed > before {
		s.Report.Say("the agent's main does not have these commits: its next commit takes them off again, unless it merges them first")
		s.Report.Hint(ledger.WithStart([]string{hold.Merge(from, operation)}, runs(ctx, s, r))...)
	}
	return err
}

// readPatience is how long a command waits for a cycle to end before it reads the ledger.
const readPatience = time.Second

// besides returns the result of [hold.Apart], and the operation that the agent's git is in the middle of.
func besides(ctx context.Context, s *session.Session, r airlock.Record, from string) (apart int, operation string, err error) {
	engine := s.Engine(r)
	waiting, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	if unlock, err := s.Store.LockFile(waiting, r.ID, promote.CycleLock); err == nil {
		defer unlock()
	}
	refs, err := s.Repo.Refs(ctx, r.Ref("promoted"), r.Ref("pending"))
	if err != nil {
		return 0, "", err
	}
	l, err := ledger.Read(engine.Dir(), ledger.Pair{Inner: r.Root, Outer: r.Base}, refs[r.Ref("promoted")], refs[r.Ref("pending")])
	if err != nil || s.Store.WorkspaceGone(r) {
		return 0, "", err
	}
	inside, err := engine.Open(ctx)
	if err != nil {
		return 0, "", err
	}
	defer inside.Close()
	if operation, _, err = inside.Operation(ctx); err == nil {
		apart, err = hold.Apart(ctx, inside, l, from)
	}
	return apart, operation, err
}

func runs(ctx context.Context, s *session.Session, r airlock.Record) bool {
	runs, err := s.Prisons().Runs(ctx, r)
	return runs || err != nil
}
