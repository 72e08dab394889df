package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/promote/daemon"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Broken is the state of an airlock that ought to run and does not.
const Broken = "broken"

// Status is what is known of an airlock.
type Status struct {
	Record    airlock.Record
	State     string // running, stopped or [Broken]
	Promotion promote.State
	Command   *prison.Launched // nil if none was launched
	Daemon    bool             // whether it runs
	DaemonPID int              // 0 if it is not to be seen from here
	Lost      string           // the workspace, if somebody has removed it
}

// Status looks at an airlock of this worktree, and heals its daemon. What another command has changed meanwhile is
// looked at again.
func (s *Session) Status(ctx context.Context, r airlock.Record) (Status, error) {
	for tries := 3; ; tries-- {
		there, later := *s, &delayed{Reporter: s.Report}
		there.Report = later
		d, err := there.statusNow(ctx, r)
		if d.State == Broken {
			s.letFinish(ctx) // it may be on its way down
		}
		now, gone := s.Current(r)
		if gone != nil {
			return d, gone
		}
		if now.Phase == r.Phase || tries == 0 {
			later.tell()
			return d, err
		}
		r = now
	}
}

// delayed is a [Reporter] whose messages wait until they are true for sure.
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

func (d *delayed) tell() {
	for _, message := range d.messages {
		message()
	}
}

// letFinish waits a moment for another start, stop or clear.
func (s *Session) letFinish(ctx context.Context) {
	const moment = 2 * time.Second
	waiting, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	if unlock, err := s.Store.Lock(waiting); err == nil {
		unlock()
	}
}

func (s *Session) statusNow(ctx context.Context, r airlock.Record) (Status, error) {
	d := Status{Record: r, State: string(r.Phase)}
	if err := s.Heal(ctx, r); err != nil {
		return d, err
	}
	if s.Store.WorkspaceGone(r) {
		d.Lost = r.Workspace
	} else if err := s.warnTracked(ctx, r); err != nil {
		return d, err
	}
	pid, err := daemon.PID(s.Store, r.ID)
	far := errors.Is(err, daemon.ErrElsewhere)
	if err != nil && !far {
		return d, err
	}
	d.Daemon, d.DaemonPID = pid != 0 || far, pid
	if err := s.prisonStatus(ctx, &d); err != nil {
		return d, err
	}
	if d.Lost != "" || s.Store.Orphan(r) {
		d.State = Broken
	}
	return d, s.promotionStatus(ctx, &d)
}

// prisonStatus fills in what is known of the prison and its command. One whose engine does not answer is broken, for
// all one can see; that is said, and keeps nothing else from being shown.
func (s *Session) prisonStatus(ctx context.Context, d *Status) error {
	runs, err := s.prisons().runs(ctx, d.Record)
	switch {
	case errors.Is(err, prison.ErrFrozen): // it runs, if nothing in it does
	case d.Record.Phase == airlock.Running && !runs:
		d.State = Broken
	case runs: // of a stopped one, if a start was killed before it was written down
		d.State = string(airlock.Running)
	}
	if err == nil {
		d.Command, err = s.prisons().launched(ctx, d.Record)
	}
	var unavailable *prison.Unavailable
	if errors.As(err, &unavailable) || errors.Is(err, prison.ErrFrozen) {
		s.Report.Say("look at the prison: %s", gitops.Escape(err.Error()))
		s.Report.Hint(Next(err)...)
		return nil
	}
	return err
}

// promotionStatus fills in what is known of landing. That the workspace cannot be looked into is said, and
// keeps nothing else from being shown.
func (s *Session) promotionStatus(ctx context.Context, d *Status) (err error) {
	engine := s.Engine(d.Record)
	defer engine.Close()
	state, err := engine.State(ctx)
	if err != nil && state.Promoted == "" {
		return err
	}
	if err != nil {
		s.Report.Say("look into the workspace: %s", gitops.Escape(err.Error()))
	}
	d.Promotion = state
	return nil
}

// warnTracked says that the user's git was made to add the workspace: from then on it looks into a repository that an
// agent writes.
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

// List looks at every airlock of this repository, each from its own worktree.
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
		if r.Phase == airlock.Starting || r.Phase == airlock.Clearing {
			continue
		}
		d, err := s.statusFrom(ctx, worktrees[r.Worktree], r)
		if errors.Is(err, ErrCleared) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", r.ID, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// statusFrom looks at an airlock from its worktree. One whose worktree is nil, as it is not to be found, is seen as stopped,
// whatever is written.
func (s *Session) statusFrom(ctx context.Context, worktree *Session, r airlock.Record) (Status, error) {
	if worktree != nil {
		return worktree.Status(ctx, r)
	}
	if err := s.tellLost(ctx, &r); err != nil {
		return Status{}, err
	}
	d, err := s.statusNow(ctx, r)
	d.State = Broken
	return d, err
}

// worktrees opens the repository's worktrees, by their ids, those too that were moved without git knowing.
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
			continue // not there, or not ours any more
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
