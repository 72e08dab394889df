package session

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// binding connects the airlocks of a repository to its worktrees, which the user may move, copy and remove.
type binding struct {
	repo    *gitops.Repository
	store   airlock.Store
	prisons prisons.Prisons
	report  Reporter
	dry     bool
}

func (s *Session) binding() binding { return binding{s.Repo, s.Store, s.Prisons(), s.Report, s.Dry} }

// bind makes sure that the record of this worktree's airlock has its present path. An airlock whose worktree is gone continues in
// the next worktree that has its branch checked out.
func (b binding) bind(ctx context.Context) error {
	r, err := b.store.Here()
	if err != nil || b.dry {
		return err
	}
	if r == nil {
		branch, err := b.repo.Branch(ctx)
		if err != nil || branch == "" {
			return err
		}
		if r, err = b.store.OrphanOn(branch); err != nil || r == nil {
			return err
		}
		return b.change(*r, func(now *airlock.Record) error { return b.adopt(ctx, now) })
	}
	if err := b.notCopied(ctx, *r); err != nil || r.RepoID == b.repo.Identity() && (r.Top == b.repo.Top || !b.holdsWorkspace(*r)) {
		return err
	}
	return b.change(*r, b.locate)
}

// change changes the present record of an airlock, unless another command holds the lock. Then a later command does it.
func (b binding) change(r airlock.Record, how func(*airlock.Record) error) error {
	return b.whenFree(func() error {
		now, err := b.store.Load(r.ID)
		if err != nil || now.Worktree != r.Worktree {
			return err
		}
		if err := how(&now); err != nil {
			return err
		}
		if err := b.store.Save(now); !gitops.NoRoom(err) && !errors.Is(err, syscall.EROFS) {
			return err
		}
		return nil // the command works without this change, or reports its own error
	})
}

// whenFree calls a function under the lock, or does nothing if another command holds the lock.
func (b binding) whenFree(do func() error) error {
	unlock, err := b.store.TryLock()
	if err != nil {
		return gitops.Unless(err, airlock.ErrBusy)
	}
	defer unlock()
	return do()
}

// holdsWorkspace reports whether the workspace of an airlock is where it belongs in this worktree.
func (b binding) holdsWorkspace(r airlock.Record) bool {
	return !b.store.WorkspaceGone(r) && b.store.Workspace(r) == b.store.WorkspaceHere(r)
}

// locate records the path of the worktree.
func (b binding) locate(r *airlock.Record) error {
	r.RepoID = b.repo.Identity()
	if b.holdsWorkspace(*r) {
		r.Top = b.repo.Top
	}
	return nil
}

// adopt takes over an airlock whose worktree is gone.
func (b binding) adopt(ctx context.Context, r *airlock.Record) error {
	if err := b.abandon(ctx, r); err != nil {
		return err
	}
	if err := ledger.Forget(b.store.Dir(r.ID)); err != nil {
		return err
	}
	r.Worktree = b.repo.WorktreeID()
	b.report.Say("%s on %s: its worktree is gone; the airlock continues in this one", r.ID, r.BranchName())
	return b.locate(r)
}

// notCopied returns an error for an airlock that came here with a copy of its repository. Its prison and workspace belong to the
// original, and every command here would change them. A moved repository is the original, and is recognized by its inode. A
// restored one (from a backup, or on another disk) continues with the airlock if no other repository uses it.
func (b binding) notCopied(ctx context.Context, r airlock.Record) error {
	if r.RepoID == b.repo.Identity() {
		return nil
	}
	where := ""
	if original, err := gitops.Open(ctx, r.Top); err == nil && original.CommonDir != b.repo.CommonDir {
		if its, err := airlock.Open(original).Load(r.ID); err == nil && its.Session == r.Session {
			where = "in " + gitops.Text(r.Top).String()
		}
	}
	if where == "" && r.RepoID != "" {
		if runs, err := b.prisons.Answers(ctx, r); runs || errors.Is(err, prison.ErrElsewhere) {
			where = "in a repository that is no longer here"
		}
	}
	if where == "" {
		return nil
	}
	return environment.Advise(fmt.Errorf("this repository is a copy; its airlock %s is in use %s", r.ID, where),
		"rm -rf "+gitops.Pasteable(b.store.Dir(r.ID))+" "+gitops.Pasteable(b.store.WorkspaceHere(r))+"  # removes its files from the copy",
		"git for-each-ref --format='delete %(refname)' refs/airlock/"+r.ID+" | git update-ref --stdin",
	)
}

// abandon stops an airlock whose worktree is gone, because no commit can land and the user does not see its prison. Pending commits
// are kept. The caller holds the store's lock.
func (b binding) abandon(ctx context.Context, r *airlock.Record) error {
	if r.Phase != airlock.Running {
		return nil
	}
	if err := b.prisons.Halt(ctx, *r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	if err := b.store.Save(*r); err != nil {
		return err
	}
	events.Stopped(b.store.Dir(r.ID), r.Session)
	return nil
}

// tellLost prints how an airlock can continue whose worktree is not found. It stops the airlock if git has no such worktree any
// more. In r it is stopped in any case.
func (b binding) tellLost(ctx context.Context, r *airlock.Record) error {
	branch := r.BranchName()
	if !b.store.Orphan(*r) {
		b.report.Say("%s on %s: its worktree is not at %s", r.ID, branch, gitops.Text(r.Top))
		b.report.Hint("git worktree repair PATH", "git worktree prune")
		r.Phase = airlock.Stopped
		return nil
	}
	if !b.dry {
		unlock, err := b.store.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := b.abandon(ctx, r); err != nil {
			return err
		}
	}
	b.report.Say("%s on %s: its worktree is gone; the airlock continues where its branch is checked out", r.ID, branch)
	b.report.Hint("git worktree add PATH " + gitops.Pasteable(r.BranchName()))
	r.Phase = airlock.Stopped
	return nil
}

// sweepOrphans clears airlocks whose worktree and workspace are gone, if no commit is pending. Only clear does this, because a
// folder that was moved away with both may come back.
func (b binding) sweepOrphans(ctx context.Context) error {
	records, err := b.store.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		if b.dry || !b.store.Orphan(r) || !b.store.WorkspaceGone(r) {
			continue
		}
		pending, err := b.repo.Ref(ctx, r.Ref("pending"))
		if err != nil {
			return err
		}
		if pending != "" {
			continue
		}
		if err := b.prisons.Erase(ctx, r); err != nil {
			return err
		}
		b.report.Say("%s on %s: its worktree and workspace are gone, and no commit is pending; the airlock is cleared", r.ID, r.BranchName())
	}
	return nil
}

// living returns the airlock of this worktree. It returns nil if there is none, or only the remains of one.
func (b binding) living() (*airlock.Record, error) {
	r, err := b.store.Here()
	if r != nil && r.Phase.Passing() {
		return nil, err
	}
	return r, err
}

// swept is like living, but takes the lock and removes the remains of an airlock.
func (b binding) swept(ctx context.Context) (*airlock.Record, error) {
	r, err := b.store.Here()
	if err == nil && r != nil && r.Phase.Passing() {
		// The lock was free, so the command that was doing this was interrupted.
		return nil, b.prisons.Erase(ctx, *r)
	}
	return r, err
}

// finishClearing finishes an interrupted clear, unless another command holds the lock.
func (b binding) finishClearing(ctx context.Context, r airlock.Record) error {
	if b.dry {
		return nil
	}
	return b.whenFree(func() error {
		if again, err := b.store.Load(r.ID); err != nil || again.Phase != airlock.Clearing {
			return nil
		}
		return b.prisons.Erase(ctx, r)
	})
}
