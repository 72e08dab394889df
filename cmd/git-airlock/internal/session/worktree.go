package session

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/snapshot"
)

// bind makes sure that the airlock of this worktree knows where it is. An airlock whose worktree is gone goes on in
// the next one that has its branch checked out.
func (s *Session) bind(ctx context.Context) error {
	r, err := s.Store.Here()
	if err != nil || s.Dry {
		return err
	}
	if r == nil {
		branch, err := s.Repo.Branch(ctx)
		if err != nil || branch == "" {
			return err
		}
		if r, err = s.Store.OrphanOn(branch); err != nil || r == nil {
			return err
		}
		return s.change(*r, func(now *airlock.Record) error { return s.adopt(ctx, now) })
	}
	if err := s.notCopied(ctx, *r); err != nil || r.Home == s.Repo.Identity() && (r.Top == s.Repo.Top || !s.holdsWorkspace(*r)) {
		return err
	}
	return s.change(*r, s.locate)
}

// change changes the record of an airlock as it is by now, unless another command is at work; then a later one does it.
func (s *Session) change(r airlock.Record, how func(*airlock.Record) error) error {
	unlock, err := s.Store.TryLock()
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.Store.Load(r.ID)
	if err != nil || now.Worktree != r.Worktree {
		return err
	}
	if err := how(&now); err != nil {
		return err
	}
	if err := s.Store.Save(now); !gitops.NoRoom(err) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil // what it was for works all the same, or says by itself what it lacks
}

// holdsWorkspace reports whether the workspace of an airlock is where it belongs in this worktree.
func (s *Session) holdsWorkspace(r airlock.Record) bool {
	return !s.Store.WorkspaceGone(r) && s.Store.Workspace(r) == s.Store.WorkspaceHere(r)
}

// locate takes note of where the worktree is.
func (s *Session) locate(r *airlock.Record) error {
	r.Home = s.Repo.Identity()
	if s.holdsWorkspace(*r) {
		r.Top = s.Repo.Top
	}
	return nil
}

// adopt takes over an airlock whose worktree is gone.
func (s *Session) adopt(ctx context.Context, r *airlock.Record) error {
	if err := s.abandon(ctx, r); err != nil {
		return err
	}
	if err := ledger.Forget(s.Store.Dir(r.ID)); err != nil {
		return err
	}
	r.Worktree = s.Repo.WorktreeID()
	s.Report.Say("%s on %s: its worktree is gone; it goes on in this one", r.ID, gitops.Escape(r.BranchName()))
	return s.locate(r)
}

// notCopied refuses an airlock that came here with a copy of its repository: prison and workspace are those of the
// original, and every command here would be meant for them. A repository in another place than before is the original if it
// is the very same one; one that came from elsewhere (a backup, another disk) goes on with it if nobody else does.
func (s *Session) notCopied(ctx context.Context, r airlock.Record) error {
	if r.Home == s.Repo.Identity() {
		return nil
	}
	where := ""
	if original, err := gitops.Open(ctx, r.Top); err == nil && original.CommonDir != s.Repo.CommonDir {
		if its, err := airlock.Open(original).Load(r.ID); err == nil && its.Session == r.Session {
			where = "in " + gitops.Escape(r.Top)
		}
	}
	if where == "" && r.Home != "" {
		if runs, err := s.prisons().answers(ctx, r); runs || errors.Is(err, prison.ErrElsewhere) {
			where = "in a repository that is no longer here"
		}
	}
	if where == "" {
		return nil
	}
	return environment.Advise(fmt.Errorf("airlock %s is at work %s, of which this repository is a copy", r.ID, where),
		"rm -rf "+gitops.Pasteable(s.Store.Dir(r.ID))+" "+gitops.Pasteable(s.Store.WorkspaceHere(r))+"  # forgets it here",
		"git for-each-ref --format='delete %(refname)' refs/airlock/"+r.ID+" | git update-ref --stdin",
	)
}

// abandon stops an airlock whose worktree is gone: nothing can land, and nobody sees its prison. What waits, waits. The
// caller holds the store's lock.
func (s *Session) abandon(ctx context.Context, r *airlock.Record) error {
	if r.Phase != airlock.Running {
		return nil
	}
	if err := s.halt(ctx, *r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	return s.Store.Save(*r)
}

// tellLost says of an airlock whose worktree is not to be found how it can go on. One whose worktree is gone for good
// is stopped; the record is seen as stopped in any case.
func (s *Session) tellLost(ctx context.Context, r *airlock.Record) error {
	branch := gitops.Escape(r.BranchName())
	if !s.Store.Orphan(*r) {
		s.Report.Say("%s on %s: its worktree is not at %s", r.ID, branch, gitops.Escape(r.Top))
		s.Report.Hint("git worktree repair <path>", "git worktree prune")
		r.Phase = airlock.Stopped
		return nil
	}
	if !s.Dry {
		unlock, err := s.Store.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := s.abandon(ctx, r); err != nil {
			return err
		}
	}
	s.Report.Say("%s on %s: its worktree is gone; it goes on where its branch is checked out", r.ID, branch)
	s.Report.Hint("git worktree add <path> " + gitops.Pasteable(r.BranchName()))
	r.Phase = airlock.Stopped
	return nil
}

// sweepOrphans clears the airlocks whose worktree and workspace are gone, if nothing of theirs waits. Only a clear does
// so: a folder that was moved away with both may come back.
func (s *Session) sweepOrphans(ctx context.Context) error {
	records, err := s.Store.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		if s.Dry || !s.Store.Orphan(r) || !s.Store.WorkspaceGone(r) {
			continue
		}
		pending, err := s.Repo.Ref(ctx, r.Ref("pending"))
		if err != nil {
			return err
		}
		if pending != "" {
			continue
		}
		if err := s.erase(ctx, r); err != nil {
			return err
		}
		s.Report.Say("%s on %s: its worktree and workspace are gone, and nothing waits; it is cleared", r.ID, gitops.Escape(r.BranchName()))
	}
	return nil
}

// rebuild makes a workspace that somebody has removed anew, of what the inner main had when it was last exported. The
// prison is stopped.
func (s *Session) rebuild(ctx context.Context, r *airlock.Record) error {
	// A daemon that has seen it gone does not look for another.
	if err := daemon.Stop(ctx, s.Store, r.ID); err != nil {
		return err
	}
	tip, err := ledger.LastExported(s.Store.Dir(r.ID))
	if err != nil {
		return err
	}
	if tip == "" {
		tip = r.Root
	}
	snap, err := snapshot.Restore(ctx, gitops.OpenQuarantine(s.prisons().quarantine(*r), r.Format), tip, r.Ghost)
	if err != nil {
		return fmt.Errorf("make the workspace anew: %w", err)
	}
	spec, err := s.prisons().spec(*r)
	if err != nil {
		return err
	}
	b := s.prisons().backend(*r)
	isolation, err := s.prisons().start(ctx, b, spec)
	if err == nil {
		setIsolation(r, isolation)
		r.Top = s.Repo.Top
		err = newBox{b, spec, s.Report}.fill(ctx, snap, nil)
	}
	if err != nil {
		// Half a workspace would be taken for the agent's.
		after := context.WithoutCancel(ctx)
		return errors.Join(fmt.Errorf("make the workspace anew: %w", err), b.Stop(after, spec), b.Wipe(after, spec))
	}
	s.Report.Say("the workspace was gone; it is made anew of what the agent had committed on main")
	return s.includeAgain(ctx, *r)
}

// includeAgain puts into a workspace that was made anew what is not committed and goes in all the same, as it is now. What
// the agent has committed at such a path stays.
func (s *Session) includeAgain(ctx context.Context, r airlock.Record) error {
	loose, err := s.Environment().Include(ctx)
	if err != nil || len(loose) == 0 {
		return err
	}
	box, err := s.prisons().attach(ctx, r)
	if err != nil {
		return err
	}
	all, err := workspaceIn(box).PlaceBeside(ctx, loose)
	if err := errors.Join(err, box.Close()); err != nil {
		return err
	}
	but := ""
	if !all {
		but = ", but for those in whose place the agent has its own"
	}
	s.Report.Say("%s that git does not track went in again (%s)%s", count(len(loose), "file"), environment.IncludeName, but)
	return nil
}
