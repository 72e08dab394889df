package session

import (
	"context"
	"errors"
	"strings"

	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// resume makes a stopped or broken airlock run again.
func (s *Session) resume(ctx context.Context, r airlock.Record, c resolved) (airlock.Record, error) {
	word := "already runs"
	if !c.runs {
		word = "runs again"
	}
	if s.Dry {
		s.Report.Say("%s on %s: would make sure that it runs", r.ID, gitops.Escape(r.BranchName()))
		return r, nil
	}
	if !c.runs {
		r = c.onto(r)
		if err := s.restart(ctx, &r, c); err != nil {
			return r, err
		}
	}
	if r.Phase != airlock.Running { // a start was killed before it was written down
		r.Phase = airlock.Running
		if err := s.Store.Save(r); err != nil {
			return r, err
		}
	}
	if err := s.renewDaemon(ctx, r); err != nil {
		return r, err
	}
	switch shown, err := s.Store.Exclude(r); {
	case err != nil:
		return r, err
	case shown:
		s.Report.Say("the workspace %s was not in info/exclude any more; it is again", r.Workspace)
	}
	s.Report.Say("%s on %s %s", r.ID, gitops.Escape(r.BranchName()), word)
	if c.runs {
		s.tooLate(r, c.Request)
	}
	if c.runs && c.changed(r.Setup) {
		s.Report.Say("%s has changed; the prison is as it was", c.setup.File)
		s.Report.Hint("git airlock stop && git airlock start")
	}
	return r, nil
}

// restart starts the prison of a workspace again.
func (s *Session) restart(ctx context.Context, r *airlock.Record, c resolved) error {
	spec, err := s.prisons().spec(*r)
	if err != nil {
		return err
	}
	b := s.prisons().backend(*r)
	if err := b.Stop(ctx, spec); err != nil { // what a crash left
		return err
	}
	if s.Store.WorkspaceGone(*r) {
		err = s.rebuild(ctx, r)
	} else {
		var isolation prison.Isolation
		isolation, err = b.Start(ctx, spec)
		setIsolation(r, isolation)
	}
	if err == nil {
		err = s.checkInside(ctx, *r, c.setup)
	}
	if err == nil && c.Selftest {
		err = s.prove(ctx, *r)
	}
	if err != nil {
		return errors.Join(err, b.Stop(context.WithoutCancel(ctx), spec))
	}
	r.Phase = airlock.Running
	return s.Store.Save(*r)
}

// renewDaemon makes sure that a daemon runs. One whose work fails makes place for another: what it lacks may be in its
// environment, which is that of the command that started it.
func (s *Session) renewDaemon(ctx context.Context, r airlock.Record) error {
	failing, err := ledger.Failing(s.Store.Dir(r.ID))
	if err == nil && failing {
		err = daemon.Stop(ctx, s.Store, r.ID)
	}
	if errors.Is(err, daemon.ErrElsewhere) {
		err = nil // it does there what there is to do
	}
	if err != nil {
		return err
	}
	return s.startDaemon(r)
}

// tooLate says that options come too late for a prison that runs.
func (s *Session) tooLate(r airlock.Record, q Request) {
	if len(q.Given) == 0 {
		return
	}
	s.Report.Say("the prison is as it was started; not obeyed: %s", strings.Join(q.Given, ", "))
	end := "stop"
	if q.BackendGiven && q.Backend != "auto" && q.Backend != r.Backend { // which stays as long as the airlock
		end = "clear"
	}
	s.Report.Hint("git airlock " + end + " && git airlock start " + strings.Join(q.Typed, " "))
}
