package session

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// lander returns the identity with which the commits of an airlock land.
func (s *Session) lander(r airlock.Record) (identity.User, error) {
	return identity.ResolveUser(identity.Lasting(s.Settings).With(r.Settings))
}

// attester returns the Attester that makes the statements about landed commits of an airlock. It calls say with its messages.
func (s *Session) attester(r airlock.Record, say func(string, ...any)) (attest.Attester, error) {
	user, err := s.lander(r)
	a := attest.Attester{Repo: s.Repo, Store: s.Store, Record: r, Config: s.Config, Who: user.String(), Now: s.Now, Version: s.Version,
		Say: say, Begin: s.Report.Begin}
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

// attest calls do to make statements about commits of an airlock. It reports an error or an interrupt to the user, and returns whether there was one.
func (s *Session) attest(ctx context.Context, r airlock.Record, do func(attest.Attester, context.Context) error) (failed bool) {
	begun := ctx.Err() == nil
	err := s.attesting(ctx, r, do)
	if failed = begun && err != nil; failed && ctx.Err() != nil {
		s.Report.Say("interrupted: some landed commits may have no evidence yet")
	} else if failed {
		s.Report.Say("some landed commits may have no evidence yet: %v", err)
	}
	return failed
}

func (s *Session) attesting(ctx context.Context, r airlock.Record, do func(attest.Attester, context.Context) error) error {
	a, err := s.attester(r, s.Report.Say)
	if err == nil && !s.Dry {
		err = do(a, ctx)
	}
	return err
}

// attestRest makes the missing statements before an airlock is removed, because nobody can make them later. If they cannot be made, attestRest
// returns a refusal. With discard, or if the disk is full, it only prints a message: the clear may be what frees the disk.
func (s *Session) attestRest(ctx context.Context, r airlock.Record, discard bool) error {
	if landed, err := ledger.TotalLanded(s.Store.Dir(r.ID)); err == nil && landed == 0 {
		return nil
	}
	soon := ctx
	if discard {
		bounded, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		soon = bounded
	}
	err := s.attesting(soon, r, attest.Attester.Rest)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case discard || gitops.NoRoom(err):
		s.Report.Say("some landed commits stay without evidence: %v", err)
		return nil
	}
	next := []string{"git airlock verify " + rangeOf(r) + "  # tries to make it", "git airlock clear --" + DiscardFlag + "  # clears without it"}
	if locked, ok := errors.AsType[*gitops.LockedError](err); ok {
		next = append(hold.RefLocked(locked).Next, next...)
	}
	return &environment.Refusal{Text: "landed commits would stay without evidence: " + gitops.Text(words.OneLine(err)).String(), Next: next}
}

// rangeOf returns the commits of the branch since the base of an airlock.
func rangeOf(r airlock.Record) string {
	return fmt.Sprintf("%.12s..%s", r.Base, gitops.Pasteable(r.BranchName()))
}

// attestLanded makes the statements about landed commits, unless a daemon is running, which makes them.
func (s *Session) attestLanded(ctx context.Context, r airlock.Record) {
	if pid, err := daemon.PID(s.Store, r.ID); err == nil && pid == 0 && s.attest(ctx, r, attest.Attester.Landed) {
		s.Report.Hint("git airlock verify " + rangeOf(r) + "  # tries again")
	}
}

// attestInDaemon returns the function that a daemon calls after landings. It keeps the settings of the daemon's start, and so the key.
func (s *Session) attestInDaemon(r airlock.Record, logger *log.Logger) func(context.Context) (more, failed bool) {
	var b attest.Backlog
	return func(ctx context.Context) (more, failed bool) {
		var err error
		if b.Attester, err = s.attester(r, logger.Printf); err == nil {
			err = b.Some(ctx)
		}
		if err != nil && ctx.Err() == nil {
			logger.Printf("some landed commits may have no evidence yet: %v", err)
		}
		return b.Left > 0, err != nil
	}
}
