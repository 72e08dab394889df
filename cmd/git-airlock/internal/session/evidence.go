package session

import (
	"context"
	"log"

	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// attester returns what makes the statements about landed commits. say tells the user something.
func (s *Session) attester(r airlock.Record, say func(string, ...any)) (attest.Attester, error) {
	user, err := identity.ResolveUser(s.Config)
	a := attest.Attester{Repo: s.Repo, Store: s.Store, Record: r, Config: s.Config, Who: user.String(), Now: s.Now, Version: s.Version, Say: say}
	if granted, ok := s.Prisons().Backend(r).(prison.Granted); ok {
		a.Kernel = granted.Granted
	}
	return a, err
}

// attestLanded makes the statements about commits that this command has landed, unless a daemon does.
func (s *Session) attestLanded(ctx context.Context, r airlock.Record) {
	if pid, err := daemon.PID(s.Store, r.ID); err != nil || pid != 0 || s.Dry {
		return
	}
	a, err := s.attester(r, s.Report.Say)
	if err == nil {
		err = a.Landed(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.Report.Say("no evidence of landed commits yet, the next landing or clear tries again: %v", err)
	}
}

// closeEvidence makes the closing statement of a session that ends.
func (s *Session) closeEvidence(ctx context.Context, r airlock.Record) {
	soon, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	a, err := s.attester(r, s.Report.Say)
	if err == nil {
		err = a.Close(soon)
	}
	if err != nil {
		s.Report.Say("the evidence of landed commits is not complete: %v", err)
	}
}

// attestInDaemon returns what a daemon calls after landings. It has the user's settings of its start, so that one session has one key.
func (s *Session) attestInDaemon(r airlock.Record, logger *log.Logger) func(context.Context) bool {
	failed := ""
	return func(ctx context.Context) bool {
		a, err := s.attester(r, logger.Printf)
		if err == nil {
			err = a.Landed(ctx)
		}
		if err == nil {
			failed = ""
		} else if text := err.Error(); ctx.Err() == nil && text != failed {
			failed = text
			logger.Printf("no evidence of landed commits yet: %s", text)
		}
		return err == nil
	}
}
