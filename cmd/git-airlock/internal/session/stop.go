package session

import (
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Stop stops prison and daemon, then lands what the agent had committed by then. An [environment.Refusal] says that
// something is held; the airlock is stopped all the same.
func (s *Session) Stop(ctx context.Context, r airlock.Record) error {
	if s.Dry {
		s.Report.Say("would stop %s on %s", r.ID, gitops.Escape(r.BranchName()))
		return nil
	}
	before, err := ledger.TotalLanded(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	unlock, err := s.Store.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.stopLocked(ctx, r, before)
}

// stopLocked does so for a caller that holds the store's lock, and says how many commits have landed since there were so
// many before.
func (s *Session) stopLocked(ctx context.Context, r airlock.Record, before int) error {
	r, err := s.Current(r)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	firm := context.WithoutCancel(ctx) // from here on it is stopped, whole
	if err := s.halt(firm, r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	if err := s.Store.Save(r); gitops.NoRoom(err) {
		s.Report.Say("it is stopped; that cannot be written down: %s", gitops.Escape(err.Error()))
		s.Report.Hint(Next(err)...)
	} else if err != nil {
		return err
	}
	// Whoever looked meanwhile has found it dead, and brought it back.
	if err := daemon.Stop(firm, s.Store, r.ID); err != nil {
		return err
	}
	if err := s.Store.StopAfterUse(r.ID, false); err != nil {
		return err
	}
	engine := s.Engine(r)
	defer engine.Close()
	outcome, err := s.drain(ctx, engine, promote.Options{})
	var state promote.State
	var unseen error
	if err == nil {
		state, unseen = engine.State(ctx)
	}
	switch {
	case errors.Is(unseen, context.Canceled):
		err = unseen
	case unseen != nil: // it is stopped all the same
		s.Report.Say("what the agent has not committed cannot be seen: %s", unseen)
	case state.Uncommitted > 0:
		s.Report.Say("the workspace keeps %s that the agent has not committed", count(state.Uncommitted, "change"))
	}
	s.Report.Say("%s on %s is stopped", r.ID, gitops.Escape(r.BranchName()))
	if err != nil {
		return err
	}
	return s.tellLanded(r, outcome, before)
}

// halt ends daemon and prison.
func (s *Session) halt(ctx context.Context, r airlock.Record) error {
	_, end := s.Report.Begin("stopping")
	defer end()
	if err := daemon.Stop(ctx, s.Store, r.ID); err != nil {
		return err
	}
	if err := s.prisons().stop(ctx, r); err != nil {
		return err
	}
	if _, err := s.prisons().fixWorkspaceMode(ctx, r); err != nil {
		s.Report.Say("the workspace %s is open to other users of this host, or closed to the agent: %s", r.Workspace, gitops.Escape(err.Error()))
	}
	return nil
}
