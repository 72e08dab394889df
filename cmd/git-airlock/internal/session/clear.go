package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
	"github.com/git-airlock/git-airlock/words"
)

// DiscardFlag is the option that sets Clear's discard. Hints name it.
const DiscardFlag = "discard-pending"

// RemainsFlag is the option of clear that names an airlock without a record that can be read.
const RemainsFlag = "remains"

// Clear removes the airlock of this worktree. Without discard it refuses if work would be lost. If there is no airlock, it removes
// the remains of airlocks whose worktrees are gone, names other remains, and fails with [ErrNoAirlock].
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
	err = s.binding().SweepOrphans(ctx)
	s.TellRemains(ctx)
	return errors.Join(ErrNoAirlock, err)
}

// ClearRemains removes what is left of an airlock whose record is gone or cannot be read.
func (s *Session) ClearRemains(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.binding().EraseRemains(context.WithoutCancel(ctx), id)
}

// TellRemains prints what is left of airlocks whose records are gone or cannot be read.
func (s *Session) TellRemains(ctx context.Context) {
	if err := s.binding().Unrecorded(ctx); err != nil && ctx.Err() == nil {
		s.Report.Say("look for remains of airlocks: %s", err)
	}
}

func (s *Session) clear(ctx context.Context, r airlock.Record, discard bool) error {
	if s.Dry {
		return s.wouldClear(ctx, r, discard)
	}
	lock := s.lock
	if discard {
		lock = func(ctx context.Context) (func(), error) { return s.lockToDiscard(ctx, r) }
	}
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if r, err = s.Store.Load(r.ID); errors.Is(err, fs.ErrNotExist) {
		return ErrNoAirlock
	} else if err != nil {
		return err
	}
	lost := ""
	if r.Phase == airlock.Running || r.Phase == airlock.Stopped {
		if lost, err = s.haltToClear(ctx, &r, discard); err != nil {
			return err
		}
		if err := s.attestRest(ctx, r, discard); err != nil {
			return err
		}
		s.tellUndone(ctx, r)
		if s.Recorder != nil {
			s.Recorder.Ended(ctx, r)
		}
	}
	r.Phase = airlock.Clearing
	if err := s.saveClearing(r); err != nil {
		return fmt.Errorf("%s is stopped, but nothing was removed: %w", r.ID, err)
	}
	s.attest(context.WithoutCancel(ctx), r, attest.Attester.Close) // nothing more lands, so the session gets no more statements
	if err := s.Prisons().Erase(context.WithoutCancel(ctx), r); err != nil {
		return err
	}
	if lost != "" {
		s.Report.Say("discarded: %s", lost)
	}
	s.Report.Say("%s is cleared; landed commits stay on %s", r.ID, r.BranchName())
	return nil
}

// wouldClear prints what clear would do, or returns its refusal.
func (s *Session) wouldClear(ctx context.Context, r airlock.Record, discard bool) error {
	if !r.Phase.Passing() {
		if err := s.wouldLose(ctx, r, discard); err != nil {
			return err
		}
	}
	s.Report.Say("would remove airlock %s on %s with its workspace %s", r.ID, r.BranchName(), r.Workspace)
	return nil
}

// wouldLose prints what would land and what would be discarded, or returns the refusal of a clear that does not discard.
func (s *Session) wouldLose(ctx context.Context, r airlock.Record, discard bool) error {
	l := s.landing(r)
	defer l.engine.Close()
	state, err := l.engine.State(ctx)
	if len(state.Holds) == 0 && state.Pending > 0 {
		s.Report.Say("would promote %s to %s", words.Count(state.Pending, "commit"), r.BranchName())
		state.Pending = 0
	}
	if !discard {
		return l.refusal(ctx, ledger.Outcome{Holds: state.Holds, Pending: state.Pending}, state, err)
	}
	if lost := lostIn(state); lost != "" {
		s.Report.Say("would discard: %s", lost)
	}
	return nil
}

// tellUndone prints that the reflog has the landed commits that undo took back. After a clear nothing else keeps these commits. If
// counting them takes longer than countTime, it prints nothing: the user may be clearing an airlock that hangs.
func (s *Session) tellUndone(ctx context.Context, r airlock.Record) {
	l := s.landing(r)
	defer l.engine.Close()
	soon, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	if n, err := verdict.Summary(soon, l.engine, review.Off); err == nil && n.Undone > 0 {
		s.Report.Say("left out: %s that undo took back", words.Count(n.Undone, "commit"))
		s.Report.Hint("git reflog " + gitops.Pasteable(r.BranchName()) + "  # shows them")
	}
}

// saveClearing writes the progress of clearing to the record. It ignores a full disk, because the workspace may be what fills it.
func (s *Session) saveClearing(r airlock.Record) error {
	if err := s.Store.Save(r); !gitops.NoRoom(err) {
		return err
	}
	return nil
}

// haltToClear lands pending commits and stops an airlock. With discard it returns the work that is lost when the airlock is removed.
// Without discard it refuses if work would be lost, and keeps the workspace.
func (s *Session) haltToClear(ctx context.Context, r *airlock.Record, discard bool) (lost string, err error) {
	if !discard {
		return "", s.haltWithoutLoss(ctx, r)
	}
	l := s.landing(*r)
	lost = l.landFirst(ctx)
	l.engine.Close()
	if err := ctx.Err(); err != nil {
		return lost, err
	}
	if err := s.haltQuickly(ctx, *r); err != nil {
		return lost, err
	}
	return lost, s.repairLanding(ctx, r)
}

func (s *Session) haltWithoutLoss(ctx context.Context, r *airlock.Record) error {
	if err := errors.Join(s.losses(ctx, *r), ctx.Err()); err != nil {
		return err
	}
	if err := s.Prisons().Halt(ctx, *r); err != nil {
		return err
	}
	if r.Phase != airlock.Running {
		return nil
	}
	r.Phase = airlock.Stopped
	if err := s.saveClearing(*r); err != nil {
		return err
	}
	events.Stopped(s.Store.Dir(r.ID), r.Session)
	// Look for losses again: the agent may have committed until Halt ended it.
	err := errors.Join(s.losses(ctx, *r), ctx.Err())
	if err != nil {
		s.Report.Say("%s on %s is stopped; nothing was removed", r.ID, r.BranchName())
	}
	return err
}

// Limits of a clear that discards. The user may discard because a promotion cycle hangs, so such a clear does not wait for ever.
const (
	// landFirstTime bounds the landing of pending commits. A busy machine can take seconds to make the prison in which git reads the
	// workspace, and what is not landed then is lost.
	landFirstTime = 8 * time.Second
	// countTime bounds each count of commits that clear removes, and the closing of their evidence.
	countTime = 4 * time.Second
	// cycleTime bounds the wait for another process to end its cycle after a signal.
	cycleTime = 3 * time.Second
	// lockTime bounds each wait for another start, stop or clear in the repository.
	lockTime = 3 * time.Second
	// mendTime bounds finishing or rolling back an interrupted landing, for which git may run the user's filters.
	mendTime = 10 * time.Second
)

// lockToDiscard takes the lock for a clear that discards. If a command holds the lock during a cycle of this airlock, it ends that
// command. For other commands it waits a limited time.
func (s *Session) lockToDiscard(ctx context.Context, r airlock.Record) (func(), error) {
	for tries := 3; ; tries-- {
		soon, cancel := context.WithTimeout(ctx, lockTime)
		unlock, err := s.lock(soon)
		cancel()
		if tries == 0 || !errors.Is(err, airlock.ErrBusy) {
			return unlock, err
		}
		if err := s.endCycle(ctx, r); err != nil {
			return nil, err
		}
	}
}

// haltQuickly is Halt without long waits for cycles of the daemon and of other commands.
func (s *Session) haltQuickly(ctx context.Context, r airlock.Record) error {
	soon, cancel := context.WithTimeout(ctx, cycleTime)
	defer cancel()
	if err := s.Prisons().Halt(soon, r); err != nil {
		return err
	}
	return s.endCycle(ctx, r)
}

// endCycle ends another command that runs a cycle of an airlock that is discarded.
func (s *Session) endCycle(ctx context.Context, r airlock.Record) error {
	ctx, cancel := context.WithTimeout(ctx, cycleTime)
	defer cancel()
	pid, err := daemon.EndCycle(ctx, s.Store, r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another command has cleared it
	}
	if err == nil && pid != 0 {
		s.Report.Say("process %d was promoting commits of %s; it was ended", pid, r.ID)
	}
	return err
}

// landFirst lands pending commits if possible, and returns the work that is left. Its errors do not stop the clear, because the user
// has asked to discard the rest.
func (l landing) landFirst(ctx context.Context) (lost string) {
	soon, cancel := context.WithTimeout(ctx, landFirstTime)
	defer cancel()
	outcome, err := l.drain(soon, promote.Options{Unchecked: true, Spared: true})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, airlock.ErrBusy):
		l.session.Report.Say("nothing more is landed: that takes longer than %s", landFirstTime)
	case ctx.Err() != nil:
		return ""
	case err != nil:
		l.session.Report.Say("nothing more is landed: %s", err)
	}
	soon, cancel = context.WithTimeout(ctx, countTime)
	defer cancel()
	state, _ := l.engine.State(soon) // after an error, only the numbers of the outcome are printed
	if soon.Err() != nil && ctx.Err() == nil {
		l.session.Report.Say("more may be discarded than is listed: counting it takes longer than %s", countTime)
	}
	state.Pending = max(outcome.Pending, state.Pending)
	return lostIn(state)
}

// lostIn lists the work that a clear discards.
func lostIn(state promote.State) string {
	var lost []string
	if state.Pending > 0 {
		lost = append(lost, words.Count(state.Pending, "pending commit"))
	}
	if state.Uncommitted > 0 {
		lost = append(lost, words.Count(state.Uncommitted, "change")+" not committed")
	}
	lost = append(lost, hold.Works(state.Places)...)
	for _, w := range state.OtherRefs {
		lost = append(lost, words.Count(w.Commits, "commit")+" on "+w.Ref)
	}
	return strings.Join(lost, ", ")
}

// repairLanding finishes or rolls back an interrupted landing. It must be called before the landing's journal is removed.
func (s *Session) repairLanding(ctx context.Context, r *airlock.Record) error {
	engine, removed := s.Engine(*r), "nothing"
	defer engine.Close()
	soon, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	hold, err := engine.RecoverOrHold(soon)
	if gitops.NoRoom(err) { // the workspace, which is removed in any case, may be what fills the disk
		removed = "its workspace"
		if err = s.Prisons().Wipe(ctx, *r); err == nil {
			hold, err = engine.RecoverOrHold(soon)
		}
	}
	var refused *environment.Refusal // finishing and rolling back have failed
	switch {
	case errors.Is(err, land.ErrUnfinished):
		refused = &environment.Refusal{Text: err.Error()}
	case err == nil && hold == nil:
		return nil
	case err == nil:
		refused = &environment.Refusal{Text: hold.Message, Next: hold.Next}
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		refused = &environment.Refusal{Text: fmt.Sprintf("it can be neither finished nor taken back in %s", mendTime),
			Next: []string{"git config --get-regexp '^filter[.]'  # a filter that does not end?"}}
	case ctx.Err() == nil && gitops.NoRoom(err):
		refused = &environment.Refusal{Text: "no space left on the device of the repository", Next: []string{"df -h " + gitops.Pasteable(s.Repo.CommonDir)}}
	case ctx.Err() == nil && !errors.Is(err, airlock.ErrBusy):
		refused = &environment.Refusal{Text: gitops.Text(err.Error()).String()}
	}
	if refused != nil {
		if len(refused.Next) == 0 { // the same command would be refused again
			journal := gitops.Pasteable(gitops.JournalPath(s.Store.Dir(r.ID)))
			refused.Next = []string{"git status", "mv " + journal + " " + journal + ".kept  # leaves the files as they are"}
		}
		err = &environment.Refusal{Text: "an unfinished landing would be left behind: " + refused.Text, Next: append(refused.Next, "git airlock clear --"+DiscardFlag)}
	}
	if r.Phase == airlock.Running {
		r.Phase = airlock.Stopped
		s.Report.Say("%s on %s is stopped; %s was removed", r.ID, r.BranchName(), removed)
		events.Stopped(s.Store.Dir(r.ID), r.Session)
	}
	return errors.Join(err, s.saveClearing(*r))
}

// losses lands pending commits if possible, and returns an [environment.Refusal] that lists the work that would be lost.
func (s *Session) losses(ctx context.Context, r airlock.Record) error {
	l := s.landing(r)
	defer l.engine.Close()
	outcome, err := l.drain(ctx, promote.Options{Unchecked: true, Spared: true})
	var state promote.State
	if err == nil {
		state, err = l.engine.State(ctx) // a missing workspace is not an error: nothing can be lost
	}
	return l.refusal(ctx, outcome, state, err)
}

// refusal returns an [environment.Refusal] that lists the work that a clear would lose, nil if there is none. err is the error of looking.
func (l landing) refusal(ctx context.Context, outcome ledger.Outcome, state promote.State, err error) error {
	discard := "git airlock clear --" + DiscardFlag + "  # loses what has not landed"
	var refused *environment.Refusal
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, airlock.ErrBusy):
		return err
	case err != nil:
		return &environment.Refusal{Text: "what would be lost cannot be read: " + err.Error(), Next: ledger.WithStart(append(slices.Clip(Next(err)), discard), l.runs())}
	case !l.mergedElsewhere(ctx, state) && errors.As(l.heldIn(outcome), &refused):
		refused.Next = append(refused.Next, "git airlock clear", discard)
		return refused
	case state.Uncommitted > 0 || len(hold.Losing(state.Places)) > 0:
		lost, next := hold.Works(state.Places), hold.KeepFirst(state.Places, prison.Workspace, l.engine.Record.ID)
		if state.Uncommitted > 0 {
			lost = append([]string{words.Count(state.Uncommitted, "uncommitted change") + " in the workspace"}, lost...)
			next = append([]string{"git airlock visit -- git status", "git airlock promote --rescue  # keeps it, as a commit"}, next...)
		}
		return &environment.Refusal{Text: strings.Join(lost, ", ") + " would be lost", Next: ledger.WithStart(append(next, discard), l.runs())}
	case len(state.OtherRefs) > 0:
		w := state.OtherRefs[0]
		return &environment.Refusal{Text: fmt.Sprintf("%s on %s would be lost: only main lands", words.Count(w.Commits, "commit"), w.Ref),
			Next: ledger.WithStart([]string{hold.Merge(w.Name, state.Operation), discard}, l.runs())}
	}
	return nil
}

// mergedElsewhere reports whether the branch is gone, and another one has all pending commits: the user has merged them there. If commits
// wait that are not exported yet, it reports false.
func (l landing) mergedElsewhere(ctx context.Context, state promote.State) bool {
	if state.Pending != state.Named || !slices.ContainsFunc(state.Holds, func(h ledger.Hold) bool { return h.Reason == ledger.BranchDeleted }) {
		return false
	}
	repo := l.engine.Repo
	pending, err := repo.Ref(ctx, l.engine.Record.Ref("pending"))
	return err == nil && pending != "" && repo.Contained(ctx, pending)
}

func (l landing) heldIn(o ledger.Outcome) error {
	o.Holds = slices.DeleteFunc(slices.Clone(o.Holds), func(h ledger.Hold) bool { return h.Reason == ledger.WorkspaceFull })
	if len(o.Holds) == 0 && o.Pending == 0 {
		return nil // stopping a workspace that is too large loses no work
	}
	return l.held(o)
}
