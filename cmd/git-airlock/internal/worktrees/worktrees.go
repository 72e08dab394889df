// Package worktrees connects the airlocks of a repository to its worktrees, which the user may move, copy and remove.
package worktrees

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

// Binding connects the airlocks of a repository to the worktrees that are there now.
type Binding struct {
	Repo    *gitops.Repository
	Store   airlock.Store
	Prisons prisons.Prisons
	Report  environment.Reporter
	Dry     bool // only print the actions
}

// Bind makes sure that the record of this worktree's airlock has its present path. An airlock whose worktree is gone continues in
// the next worktree that has its branch checked out.
func (b Binding) Bind(ctx context.Context) error {
	r, err := b.Store.Here()
	if _, ok := errors.AsType[*airlock.DamagedError](err); ok || b.Dry {
		return nil // a command that needs the airlock here returns the error
	}
	if err != nil {
		return err
	}
	if r == nil {
		branch, err := b.Repo.Branch(ctx)
		if err != nil || branch == "" {
			return err
		}
		if r, err = b.Store.OrphanOn(branch); err != nil || r == nil {
			return err
		}
		return b.change(*r, func(now *airlock.Record) error { return b.adopt(ctx, now) })
	}
	if err := b.notCopied(ctx, *r); err != nil || r.RepoID == b.Repo.Identity() && (r.Top == b.Repo.Top || !b.holdsWorkspace(*r)) {
		return err
	}
	return b.change(*r, b.locate)
}

// change changes the present record of an airlock. If another command holds the lock, a later command makes the change.
func (b Binding) change(r airlock.Record, how func(*airlock.Record) error) error {
	return b.whenFree(func() error {
		now, err := b.Store.Load(r.ID)
		if err != nil || now.Worktree != r.Worktree {
			return err
		}
		if err := how(&now); err != nil {
			return err
		}
		if err := b.Store.Save(now); !gitops.NoRoom(err) && !errors.Is(err, syscall.EROFS) {
			return err
		}
		return nil // the command works without this change, or reports its own error
	})
}

// whenFree calls a function under the lock, or does nothing if another command holds the lock.
func (b Binding) whenFree(do func() error) error {
	unlock, err := b.Store.TryLock()
	if err != nil {
		return gitops.Unless(err, airlock.ErrBusy)
	}
	defer unlock()
	return do()
}

// holdsWorkspace reports whether the workspace of an airlock is where it belongs in this worktree.
func (b Binding) holdsWorkspace(r airlock.Record) bool {
	return !b.Store.WorkspaceGone(r) && b.Store.Workspace(r) == b.Store.WorkspaceHere(r)
}

// locate records the path of the worktree.
func (b Binding) locate(r *airlock.Record) error {
	r.RepoID = b.Repo.Identity()
	if b.holdsWorkspace(*r) {
		r.Top = b.Repo.Top
	}
	return nil
}

// adopt takes over an airlock whose worktree is gone.
func (b Binding) adopt(ctx context.Context, r *airlock.Record) error {
	if err := b.Abandon(ctx, r); err != nil {
		return err
	}
	if err := ledger.Forget(b.Store.Dir(r.ID)); err != nil {
		return err
	}
	r.Worktree = b.Repo.WorktreeID()
	b.Report.Say("%s on %s: its worktree is gone; the airlock continues in this one", r.ID, r.BranchName())
	return b.locate(r)
}

// ErrCopy reports a copy of a repository whose airlock is in use elsewhere.
var ErrCopy = errors.New("this repository is a copy")

// notCopied returns an [ErrCopy] for an airlock that came here with a copy of its repository. Its prison and workspace belong to the
// original, and every command here would change them. A moved repository is the original, and is recognized by its inode. A
// restored one (from a backup, or on another disk) continues with the airlock if no other repository uses it.
func (b Binding) notCopied(ctx context.Context, r airlock.Record) error {
	if r.RepoID == b.Repo.Identity() {
		return nil
	}
	where := ""
	if original, err := gitops.Open(ctx, r.Top); err == nil && original.CommonDir != b.Repo.CommonDir {
		if its, err := airlock.Open(original).Load(r.ID); err == nil && its.Session == r.Session {
			where = "in " + gitops.Text(r.Top).String()
		}
	}
	if where == "" && r.RepoID != "" {
		if runs, err := b.Prisons.Answers(ctx, r); runs || errors.Is(err, prison.ErrElsewhere) {
			where = "in a repository that is no longer here"
		}
	}
	if where == "" {
		return nil
	}
	return environment.Advise(fmt.Errorf("%w; its airlock %s is in use %s", ErrCopy, r.ID, where),
		"rm -rf "+gitops.Pasteable(b.Store.Dir(r.ID))+"  # only in this copy",
		"git airlock clear --remains="+r.ID+"  # removes the rest of it from the copy",
	)
}

// Abandon stops an airlock whose worktree is gone, because no commit can land and the user does not see its prison. Pending commits
// are kept. The caller holds the store's lock.
func (b Binding) Abandon(ctx context.Context, r *airlock.Record) error {
	if r.Phase != airlock.Running {
		return nil
	}
	if err := b.Prisons.Halt(ctx, *r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	if err := b.Store.Save(*r); err != nil {
		return err
	}
	events.Stopped(b.Store.Dir(r.ID), r.Session)
	return nil
}

// TellLost prints how the user can continue with an airlock whose worktree is not found. If git has no such worktree any more, TellLost
// stops the airlock. In r it sets the phase to stopped in any case.
func (b Binding) TellLost(ctx context.Context, r *airlock.Record) error {
	branch := r.BranchName()
	if !b.Store.Orphan(*r) {
		b.Report.Say("%s on %s: its worktree is not at %s", r.ID, branch, gitops.Text(r.Top))
		b.Report.Hint("git worktree repair PATH", "git worktree prune")
		r.Phase = airlock.Stopped
		return nil
	}
	if !b.Dry {
		unlock, err := b.Store.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := b.Abandon(ctx, r); err != nil {
			return err
		}
	}
	tip, err := b.Repo.Ref(ctx, r.Branch)
	if err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	if tip == "" {
		b.Report.Say("%s on %s: its worktree and its branch are gone; the airlock continues where a branch of this name is checked out", r.ID, branch)
		b.Report.Hint("git worktree add -b " + gitops.Pasteable(branch) + " PATH " + r.Ref("promoted"))
		return nil
	}
	b.Report.Say("%s on %s: its worktree is gone; the airlock continues where its branch is checked out", r.ID, branch)
	b.Report.Hint("git worktree add PATH " + gitops.Pasteable(branch))
	return nil
}

// SweepOrphans clears airlocks whose worktree and workspace are gone, if no commit is pending. Only clear does this, because a
// folder that was moved away with both may come back.
func (b Binding) SweepOrphans(ctx context.Context) error {
	records, err := b.Store.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		if b.Dry || !b.Store.Orphan(r) || !b.Store.WorkspaceGone(r) {
			continue
		}
		pending, err := b.Repo.Ref(ctx, r.Ref("pending"))
		if err != nil {
			return err
		}
		if pending != "" {
			continue
		}
		if err := b.Prisons.Erase(ctx, r); err != nil {
			return err
		}
		b.Report.Say("%s on %s: its worktree and workspace are gone, and no commit is pending; the airlock is cleared", r.ID, r.BranchName())
	}
	return nil
}

// Living returns the airlock of this worktree. It returns nil if there is none, or only the remains of one.
func (b Binding) Living() (*airlock.Record, error) {
	r, err := b.Store.Here()
	if r != nil && r.Phase.Passing() {
		return nil, err
	}
	return r, err
}

// Swept is like Living, but removes the remains of an airlock. The caller holds the lock.
func (b Binding) Swept(ctx context.Context) (*airlock.Record, error) {
	r, err := b.Store.Here()
	if err == nil && r != nil && r.Phase.Passing() {
		// The lock was free, so the start or clear that left this phase was interrupted.
		return nil, b.Prisons.Erase(ctx, *r)
	}
	return r, err
}

// FinishClearing finishes an interrupted clear, unless another command holds the lock.
func (b Binding) FinishClearing(ctx context.Context, r airlock.Record) error {
	if b.Dry {
		return nil
	}
	return b.whenFree(func() error {
		if again, err := b.Store.Load(r.ID); err != nil || again.Phase != airlock.Clearing {
			return nil
		}
		return b.Prisons.Erase(ctx, r)
	})
}
