package session

import (
	"context"
	"errors"
	"log"

	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// attester returns the Attester that makes the statements about landed commits of an airlock. It calls say with its messages.
func (s *Session) attester(r airlock.Record, say func(string, ...any)) (attest.Attester, error) {
	user, err := identity.ResolveUser(s.Config)
	a := attest.Attester{Repo: s.Repo, Store: s.Store, Record: r, Config: s.Config, Who: user.String(), Now: s.Now, Version: s.Version, Say: say}
	if granted, ok := s.Prisons().Backend(r).(prison.Granted); ok {
		a.Kernel = granted.Granted
	}
	if s.Recorder != nil {
		a.Runs = s.Recorder.Runs
	}
	return a, err
}

// Attest makes the statements about all commits that airlocks of this repository have landed.
func (s *Session) Attest(ctx context.Context) {
	all, _ := s.Store.List() // a repository without readable airlocks has none to attest
	for _, r := range all {
		if !r.Phase.Passing() {
			s.attest(ctx, r, attest.Attester.Landed)
		}
	}
}

// attest calls do to make statements about commits of an airlock. It reports an error to the user, and does not return it.
func (s *Session) attest(ctx context.Context, r airlock.Record, do func(attest.Attester, context.Context) error) {
	a, err := s.attester(r, s.Report.Say)
	if err == nil && !s.Dry {
		err = do(a, ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Report.Say("some landed commits may have no evidence yet: %v", err)
	}
}

// attestLanded makes the statements about landed commits, unless a daemon is running, which makes them.
func (s *Session) attestLanded(ctx context.Context, r airlock.Record) {
	if pid, err := daemon.PID(s.Store, r.ID); err == nil && pid == 0 {
		s.attest(ctx, r, attest.Attester.Landed)
	}
}

// attestInDaemon returns the function that a daemon calls after landings. It keeps the settings of the daemon's start, and so the key.
func (s *Session) attestInDaemon(r airlock.Record, logger *log.Logger) func(context.Context) bool {
	return func(ctx context.Context) bool {
		a, err := s.attester(r, logger.Printf)
		if err == nil {
			err = a.Landed(ctx)
		}
		if err != nil && ctx.Err() == nil {
			logger.Printf("some landed commits may have no evidence yet: %v", err)
		}
		return err == nil
	}
}
