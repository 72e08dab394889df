package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/inbound"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/pause"
)

// Broken is the state of an airlock that should be running but is not.
const Broken = "broken"

// Status is the state of an airlock.
type Status struct {
	Record    airlock.Record
	State     string // running, stopped or [Broken]
	Promotion promote.State
	Command   *prison.Launched // nil if none was launched
	Daemon    bool             // whether the daemon is running
	DaemonPID int              // 0 if it cannot be seen from here
	Lost      string           // the workspace, if it was removed
	Refusals  network.Recent   // of the network
	Syncing   bool             // a sync is running, or is not finished
	SyncWaits bool             // a sync waits until no work of the agent is in the way
	Landing   *time.Time       // the time at which the landing that is at work began, if that is long ago; otherwise nil
	Mend      []string         // what to type if promotion fails, as far as its cause is known
}

// Status returns the status of this worktree's airlock, and restarts a dead daemon. If another command changes the airlock
// meanwhile, it reads the status again.
func (s *Session) Status(ctx context.Context, r airlock.Record) (Status, error) {
	for tries := 3; ; tries-- {
		there, later := *s, &delayed{Reporter: s.Report}
		there.Report = later
		d, err := there.statusNow(ctx, r)
		if d.State == Broken {
			s.letFinish(ctx) // another command may be stopping it
		}
		now, gone := s.Current(r)
		if gone != nil {
			return d, gone
		}
		if now.Phase == r.Phase || tries == 0 {
			later.flush()
			return d, err
		}
		r = now
	}
}

// delayed is a [Reporter] that keeps messages until flush prints them. [Session.Status] drops those of a status that it reads again.
type delayed struct {
	Reporter
	messages []func()
}

func (d *delayed) Say(format string, args ...any) {
	d.messages = append(d.messages, func() { d.Reporter.Say(format, args...) })
}

func (d *delayed) Hint(commands ...string) {
	d.messages = append(d.messages, func() { d.Reporter.Hint(commands...) })
}

func (d *delayed) flush() {
	for _, message := range d.messages {
		message()
	}
}

// letFinish waits a moment for another start, stop or clear.
func (s *Session) letFinish(ctx context.Context) {
	const moment = 10 * time.Second // a stop ends a prison in an instant, unless the machine is busy
	waiting, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	if unlock, err := s.Store.LockAfter(waiting); err == nil {
		unlock()
	}
}

func (s *Session) statusNow(ctx context.Context, r airlock.Record) (Status, error) {
	d := Status{Record: r, State: string(r.Phase)}
	if err := s.Heal(r); err != nil {
		return d, err
	}
	if s.Store.WorkspaceGone(r) {
		d.Lost = r.Workspace
	} else if err := s.warnTracked(ctx, r); err != nil {
		return d, err
	}
	pid, err := daemon.PID(s.Store, r.ID)
	elsewhere := errors.Is(err, daemon.ErrElsewhere)
	if err != nil && !elsewhere {
		return d, err
	}
	d.Daemon, d.DaemonPID = pid != 0 || elsewhere, pid
	if err := d.seePrison(ctx, s.Prisons()); err != nil {
		return d, err
	}
	if d.Lost != "" || s.Store.Orphan(r) {
		d.State = Broken
	}
	d.Refusals = s.RecentRefusals(r, d.State == string(airlock.Running))
	if d.Syncing, d.SyncWaits, err = inbound.Syncing(s.Store.Dir(r.ID)); err != nil {
		return d, err
	}
	err = d.seePromotion(ctx, s.Engine(r), s.Report)
	d.seeLanding(s)
	if d.Promotion.Failure != "" {
		_, nobody := s.lander(r)
		d.Mend = Next(nobody)
	}
	return d, err
}

// seePrison fills in the state of the prison and its command. If its engine does not answer, the state is broken, with a message.
// The rest of the status is still shown.
func (d *Status) seePrison(ctx context.Context, in prisons.Prisons) error {
	runs, err := in.Runs(ctx, d.Record)
	switch {
	case errors.Is(err, prison.ErrFrozen): // the prison runs, but all its processes are frozen
	case d.Record.Phase == airlock.Running && !runs:
		d.State = Broken
	case runs: // the record says stopped if a start was killed before it saved the record
		d.State = string(airlock.Running)
	}
	if err == nil {
		d.Command, err = in.Launched(ctx, d.Record)
	}
	if _, ok := errors.AsType[*prison.Unavailable](err); ok || errors.Is(err, prison.ErrFrozen) {
		in.Report.Say("read the state of the prison: %s", err)
		in.Report.Hint(Next(err)...)
		return nil
	}
	return err
}

// seePromotion fills in the state of promotion. If the workspace cannot be read, it prints a message, and the rest of the status
// is still shown.
func (d *Status) seePromotion(ctx context.Context, engine *promote.Engine, report Reporter) error {
	defer engine.Close()
	state, err := engine.State(ctx)
	if err = TellUnread(ctx, state, err, report); err == nil {
		d.Promotion = state
	}
	return err
}

// TellUnread prints a message if err, the error with a state, reports that the workspace cannot be read. The outer part of the state is then
// still right. It returns any other error.
func TellUnread(ctx context.Context, state promote.State, err error, report Reporter) error {
	if err == nil || state.Promoted == "" || ctx.Err() != nil {
		return err
	}
	report.Say("read the workspace: %s", err)
	report.Hint(Next(err)...)
	return nil
}

// seeLanding fills in when a long landing began. Without a process that runs a cycle, the files of a landing are from one that was
// killed.
func (d *Status) seeLanding(s *Session) {
	begun := pause.LandingSince(s.Store.Dir(d.Record.ID))
	if begun.IsZero() || s.Now().Sub(begun) < pause.LongLanding {
		return
	}
	if airlock.IsBusy(s.Store.TryLockFile(d.Record.ID, promote.CycleLock)) {
		d.Landing = &begun
	}
}

// warnTracked prints a warning if the user has added the workspace to the index. Git then reads a repository that an agent
// writes.
func (s *Session) warnTracked(ctx context.Context, r airlock.Record) error {
	if !r.Inside || r.Worktree != s.Repo.WorktreeID() {
		return nil
	}
	tracked, err := s.Repo.Tracks(ctx, r.Workspace)
	if tracked {
		s.Report.Say("the workspace %s was added to the index: git status now runs git inside it", r.Workspace)
		s.Report.Hint("git rm -r -f -q --cached " + r.Workspace)
	}
	return err
}

// List returns the status of every airlock of this repository, each from its own worktree.
func (s *Session) List(ctx context.Context) ([]Status, error) {
	records, err := s.Store.List()
	if err != nil {
		return nil, err
	}
	worktrees, err := s.worktrees(ctx, records)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, r := range records {
		if r.Phase.Passing() {
			continue
		}
		d, err := s.statusFrom(ctx, worktrees[r.Worktree], r)
		if errors.Is(err, ErrCleared) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the status of %s: %w", r.ID, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// statusFrom returns the status of an airlock from its worktree. If its worktree is not found, worktree is nil. Then the state is
// broken, and the record in the status says stopped, so that no daemon is started for the airlock.
func (s *Session) statusFrom(ctx context.Context, worktree *Session, r airlock.Record) (Status, error) {
	if worktree != nil {
		return worktree.Status(ctx, r)
	}
	if err := s.binding().TellLost(ctx, &r); err != nil {
		return Status{}, err
	}
	d, err := s.statusNow(ctx, r)
	d.State = Broken
	return d, err
}

// worktrees opens the repository's worktrees, by their ids, including those that were moved without git.
func (s *Session) worktrees(ctx context.Context, records []airlock.Record) (map[string]*Session, error) {
	paths, err := s.Repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*Session{s.Repo.WorktreeID(): s} // git need not list it: GIT_WORK_TREE can name any folder
	for _, r := range records {
		paths = append(paths, r.Top)
	}
	for _, path := range paths {
		repo, err := gitops.Open(ctx, path)
		if err != nil || repo.CommonDir != s.Repo.CommonDir || all[repo.WorktreeID()] != nil {
			continue // missing, or part of another repository
		}
		if s.Dry {
			repo.DryRun()
		}
		there := *s
		there.Repo, there.Store = repo, airlock.Open(repo)
		all[repo.WorktreeID()] = &there
	}
	return all, nil
}
