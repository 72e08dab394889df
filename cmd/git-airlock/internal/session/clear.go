package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// DiscardFlag is the option of the command that clears with Clear's discard, as hints name it.
const DiscardFlag = "discard-pending"

// Clear removes the airlock of this worktree once nothing of it would be lost, or with discard in any case. Without an airlock
// it removes what is left of those whose worktrees are gone, and fails with [ErrNoAirlock].
func (s *Session) Clear(ctx context.Context, discard bool) error {
	r, err := s.Store.Here()
	if err != nil {
		return err
	}
	if r != nil {
		return s.clear(ctx, *r, discard)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(ErrNoAirlock, s.sweepOrphans(ctx))
}

func (s *Session) clear(ctx context.Context, r airlock.Record, discard bool) error {
	if s.Dry {
		s.Report.Say("would remove airlock %s on %s with its workspace %s", r.ID, gitops.Escape(r.BranchName()), r.Workspace)
		return nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if r, err = s.Store.Load(r.ID); errors.Is(err, fs.ErrNotExist) {
		return ErrNoAirlock
	} else if err != nil {
		return err
	}
	if r.Phase == airlock.Running || r.Phase == airlock.Stopped {
		if err := s.letGo(ctx, &r, discard); err != nil {
			return err
		}
	}
	r.Phase = airlock.Clearing
	if err := s.save(r); err != nil {
		return err
	}
	if err := s.erase(context.WithoutCancel(ctx), r); err != nil {
		return err
	}
	s.Report.Say("%s is cleared; what landed on %s stays", r.ID, gitops.Escape(r.BranchName()))
	return nil
}

// save writes down how far clearing has come, unless there is no room: what takes it may be the workspace.
func (s *Session) save(r airlock.Record) error {
	if err := s.Store.Save(r); !gitops.NoRoom(err) {
		return err
	}
	return nil
}

// letGo stops an airlock of which nothing would be lost, or may be; else it refuses and changes nothing.
func (s *Session) letGo(ctx context.Context, r *airlock.Record, discard bool) error {
	firm := context.WithoutCancel(ctx) // nothing is half stopped
	if discard {
		s.landFirst(ctx, *r)
		if err := errors.Join(ctx.Err(), s.halt(firm, *r)); err != nil {
			return err
		}
		return s.mendHalf(ctx, r)
	}
	if err := errors.Join(s.losses(ctx, *r), ctx.Err()); err != nil {
		return err
	}
	if err := s.halt(firm, *r); err != nil {
		return err
	}
	// The agent may have gone on until a moment ago.
	if r.Phase == airlock.Running {
		r.Phase = airlock.Stopped
		if err := s.save(*r); err != nil {
			return err
		}
		err := errors.Join(s.losses(ctx, *r), ctx.Err())
		if err != nil {
			s.Report.Say("%s on %s is stopped; nothing of it is removed", r.ID, gitops.Escape(r.BranchName()))
		}
		return err
	}
	return nil
}

// landFirstTime bounds what is tried of a workspace that is to be thrown away: it may be why it is.
const landFirstTime = 2 * time.Second

// landFirst lands what can land, and says what goes with the rest. Whatever hinders it is no reason to keep what is not wanted.
func (s *Session) landFirst(ctx context.Context, r airlock.Record) {
	ctx, cancel := context.WithTimeout(ctx, landFirstTime)
	defer cancel()
	engine := s.Engine(r)
	defer engine.Close()
	outcome, err := s.drain(ctx, engine, promote.Options{})
	if err != nil {
		return
	}
	var lost []string
	if outcome.Pending > 0 {
		lost = append(lost, count(outcome.Pending, "pending commit"))
	}
	if state, err := engine.State(ctx); err == nil {
		if state.Uncommitted > 0 {
			lost = append(lost, count(state.Uncommitted, "change")+" not committed")
		}
		for _, w := range state.Waiting {
			lost = append(lost, count(w.Commits, "commit")+" on "+w.Ref)
		}
	}
	if len(lost) > 0 {
		s.Report.Say("discarded: %s", strings.Join(lost, ", "))
	}
}

// mendHalf sees to it that no landing is half done, which nobody could finish or take back once its journal is removed.
func (s *Session) mendHalf(ctx context.Context, r *airlock.Record) error {
	engine := s.Engine(*r)
	defer engine.Close()
	hold, err := engine.RecoverOrHold(ctx)
	if gitops.NoRoom(err) { // what takes it may be the workspace, which goes in any case
		if err = s.wipe(ctx, *r); err == nil {
			hold, err = engine.RecoverOrHold(ctx)
		}
	}
	var refused *environment.Refusal
	switch {
	case errors.Is(err, land.ErrUnsettled):
		refused = &environment.Refusal{Text: err.Error()}
	case err == nil && hold == nil:
		return nil
	case err == nil:
		refused = &environment.Refusal{Text: hold.Message, Next: hold.Next}
	case ctx.Err() == nil && !errors.Is(err, airlock.ErrBusy):
		refused = s.hindered(err)
	}
	if refused != nil {
		err = &environment.Refusal{Text: "half a landing would stay: " + refused.Text, Next: append(refused.Next, "git airlock clear --"+DiscardFlag)}
	}
	if r.Phase == airlock.Running {
		r.Phase = airlock.Stopped
		s.Report.Say("%s on %s is stopped; nothing of it is removed", r.ID, gitops.Escape(r.BranchName()))
	}
	return errors.Join(err, s.save(*r))
}

// hindered says what to do about what keeps half a landing from being finished or taken back.
func (s *Session) hindered(err error) *environment.Refusal {
	if gitops.NoRoom(err) {
		return &environment.Refusal{Text: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(s.Repo.CommonDir)}}
	}
	return &environment.Refusal{Text: gitops.Escape(err.Error())}
}

// losses lands what can land and returns an [environment.Refusal] that says what would be lost.
func (s *Session) losses(ctx context.Context, r airlock.Record) error {
	discard := "git airlock clear --" + DiscardFlag + "  # loses it"
	engine := s.Engine(r)
	defer engine.Close()
	outcome, err := s.drain(ctx, engine, promote.Options{})
	var state promote.State
	if err == nil {
		state, err = engine.State(ctx) // of a workspace that is gone it says nothing: there is nothing to lose
	}
	var refused *environment.Refusal
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return &environment.Refusal{Text: "what is in the workspace cannot be seen: " + err.Error(), Next: []string{discard}}
	case errors.As(heldIn(outcome), &refused):
		refused.Next = append(refused.Next, "git airlock clear", discard)
		return refused
	case state.Uncommitted > 0:
		hints := []string{"git airlock visit -- git status", "git airlock promote --rescue  # keeps it, as a commit", discard}
		if r.Phase != airlock.Running {
			hints = append([]string{"git airlock start"}, hints...)
		}
		return &environment.Refusal{Text: count(state.Uncommitted, "change") + " in the workspace would be lost: not committed", Next: hints}
	case len(state.Waiting) > 0:
		w, hints := state.Waiting[0], []string{MergeCommand(state.Waiting[0]), discard}
		if r.Phase != airlock.Running {
			hints = append([]string{"git airlock start"}, hints...)
		}
		return &environment.Refusal{Text: fmt.Sprintf("%s on %s would be lost: only main lands", count(w.Commits, "commit"), w.Ref), Next: hints}
	}
	return nil
}

func heldIn(o ledger.Outcome) error {
	o.Holds = slices.DeleteFunc(slices.Clone(o.Holds), func(h ledger.Hold) bool { return h.Reason == ledger.WorkspaceFull })
	if len(o.Holds) == 0 && o.Pending == 0 {
		return nil // a workspace that is too large is no loss
	}
	return held(o)
}

// erase removes whatever there is of an airlock. It can be repeated after an interruption.
func (s *Session) erase(ctx context.Context, r airlock.Record) error {
	if _, err := os.Lstat(s.Store.Dir(r.ID)); errors.Is(err, fs.ErrNotExist) {
		return nil // it is the first thing made, and the last removed
	}
	if err := s.halt(ctx, r); err != nil {
		return err
	}
	if err := s.wipe(ctx, r); err != nil {
		return err
	}
	err := s.Store.Remove(ctx, r)
	if errors.Is(err, context.Canceled) { // the terminal's ^C meant for us has killed a git of ours
		err = s.Store.Remove(ctx, r)
	}
	return err
}

// wipe removes the workspace of a prison that does not run, and all that the prison has.
func (s *Session) wipe(ctx context.Context, r airlock.Record) error {
	_, end := s.Report.Begin("removing the workspace")
	defer end()
	return s.prisons().wipe(ctx, r)
}

// finishClearing removes what an interrupted clear left, unless another command is at it.
func (s *Session) finishClearing(ctx context.Context, r airlock.Record) error {
	if s.Dry {
		return nil
	}
	unlock, err := s.Store.TryLock()
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	if again, err := s.Store.Load(r.ID); err != nil || again.Phase != airlock.Clearing {
		return nil
	}
	return s.erase(ctx, r)
}
