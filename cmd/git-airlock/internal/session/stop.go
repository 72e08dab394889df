package session

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Stop stops prison and daemon, and then lands the agent's commits. An [environment.Refusal] reports that a commit is held. The
// airlock is stopped in this case, too.
func (s *Session) Stop(ctx context.Context, r airlock.Record) error {
	if s.Dry {
		s.Report.Say("would stop %s on %s", r.ID, r.BranchName())
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
	r, err = s.stopLocked(ctx, r)
	unlock() // a cycle takes as long as the user's filters, and other commands should not wait for it
	if err != nil {
		return err
	}
	return s.landRest(ctx, r, before, promote.Options{Unchecked: true, Spared: true}) // a check may take as long as the tests of the project
}

// stopLocked stops prison and daemon, and returns the new record. The caller holds the store's lock.
func (s *Session) stopLocked(ctx context.Context, r airlock.Record) (airlock.Record, error) {
	r, err := s.Current(r)
	if err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	// Halt ends the prison even if ctx ends meanwhile. The record must then say so, and what follows is done in any case.
	if err := s.Prisons().Halt(ctx, r); err != nil {
		return r, err
	}
	s.sendToAgent(ctx, r)
	ran := r.Phase == airlock.Running
	r.Phase = airlock.Stopped
	if err := s.Store.Save(r); gitops.NoRoom(err) {
		s.Report.Say("the airlock is stopped, but its state cannot be written: %s", err)
		s.Report.Hint(Next(err)...)
	} else if errors.Is(err, syscall.EROFS) { // nothing can land, either
		return r, fmt.Errorf("prison and daemon are stopped, but the airlock's state cannot be written: %w", err)
	} else if err != nil {
		return r, err
	}
	if ran {
		events.Stopped(s.Store.Dir(r.ID), r.Session)
	}
	// Another command may have found the daemon dead meanwhile, and restarted it.
	if err := daemon.Stop(ctx, s.Store, r.ID); err != nil {
		return r, err
	}
	return r, s.Store.StopAfterUse(r.ID, false)
}

// landRest lands the pending commits of a stopped airlock, and prints the number of commits landed since before.
func (s *Session) landRest(ctx context.Context, r airlock.Record, before int, options promote.Options) error {
	l := s.landing(r)
	defer l.engine.Close()
	l.engine.Landed = nil
	outcome, err := l.drain(ctx, options)
	s.attestLanded(ctx, r) // also about commits that the daemon landed before it was stopped
	var state promote.State
	var unseen error
	if err == nil {
		state, unseen = l.engine.State(ctx)
	}
	switch {
	case errors.Is(unseen, context.Canceled):
		err = unseen
	case unseen != nil: // the airlock is stopped, so this is only a message
		s.Report.Say("the agent's uncommitted changes cannot be counted: %s", unseen)
	case state.Uncommitted > 0:
		s.Report.Say("the workspace keeps %s that the agent has not committed", words.Count(state.Uncommitted, "change"))
	}
	for _, work := range hold.Works(state.Places) {
		s.Report.Say("the airlock keeps %s", work)
	}
	l.tellElsewhere(state)
	if err == nil && unseen == nil {
		s.left = &state
	}
	s.Report.Say("%s on %s is stopped", r.ID, r.BranchName())
	if err != nil {
		return err
	}
	return l.tellLanded(outcome, before)
}
