package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot"
)

// bind makes sure that the airlock of this worktree knows where it is. An airlock whose worktree is gone goes on in
// the next one that has its branch checked out.
func (a *app) bind(ctx context.Context) error {
	r, err := a.store.Here()
	if err != nil || a.dry {
		return err
	}
	if r == nil {
		branch, err := a.repo.Branch(ctx)
		if err != nil || branch == "" {
			return err
		}
		if r, err = a.store.OrphanOn(branch); err != nil || r == nil {
			return err
		}
		return a.change(*r, func(now *airlock.Record) error { return a.adopt(ctx, now) })
	}
	if err := a.notCopied(ctx, *r); err != nil || r.Home == a.repo.Identity() && (r.Top == a.repo.Top || !a.holdsWorkspace(*r)) {
		return err
	}
	return a.change(*r, a.locate)
}

// change changes the record of an airlock as it is by now, unless another command is at work; then a later one does it.
func (a *app) change(r airlock.Record, how func(*airlock.Record) error) error {
	unlock, err := a.store.TryLock()
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	now, err := a.store.Load(r.ID)
	if err != nil || now.Worktree != r.Worktree {
		return err
	}
	if err := how(&now); err != nil {
		return err
	}
	if err := a.store.Save(now); !gitops.NoRoom(err) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil // what it was for works all the same, or says by itself what it lacks
}

// holdsWorkspace tells whether the workspace of an airlock is where it belongs in this worktree.
func (a *app) holdsWorkspace(r airlock.Record) bool {
	return !a.store.WorkspaceGone(r) && a.store.Workspace(r) == a.store.WorkspaceHere(r)
}

// locate takes note of where the worktree is.
func (a *app) locate(r *airlock.Record) error {
	r.Home = a.repo.Identity()
	if a.holdsWorkspace(*r) {
		r.Top = a.repo.Top
	}
	return nil
}

// adopt takes over an airlock whose worktree is gone.
func (a *app) adopt(ctx context.Context, r *airlock.Record) error {
	if err := a.abandon(ctx, r); err != nil {
		return err
	}
	if err := ledger.Forget(a.store.Dir(r.ID)); err != nil {
		return err
	}
	r.Worktree = a.repo.WorktreeID()
	ui.Say(a.message, "%s on %s: its worktree is gone; it goes on in this one", r.ID, gitops.Escape(r.BranchName()))
	return a.locate(r)
}

// notCopied refuses an airlock that came here with a copy of its repository: prison and workspace are those of the
// original, and every command here would be meant for them. A repository in another place than before is the original if it
// is the very same one; one that came from elsewhere (a backup, another disk) goes on with it if nobody else does.
func (a *app) notCopied(ctx context.Context, r airlock.Record) error {
	if r.Home == a.repo.Identity() {
		return nil
	}
	where := ""
	if original, err := gitops.Open(ctx, r.Top); err == nil && original.CommonDir != a.repo.CommonDir {
		if its, err := airlock.Open(original).Load(r.ID); err == nil && its.Session == r.Session {
			where = "in " + gitops.Escape(r.Top)
		}
	}
	if where == "" && r.Home != "" {
		if runs, err := a.answers(ctx, r); runs || errors.Is(err, prison.ErrElsewhere) {
			where = "in a repository that is no longer here"
		}
	}
	if where == "" {
		return nil
	}
	return &hinted{fmt.Errorf("airlock %s is at work %s, of which this repository is a copy", r.ID, where), []string{
		"rm -rf " + gitops.Pasteable(a.store.Dir(r.ID)) + " " + gitops.Pasteable(a.store.WorkspaceHere(r)) + "  # forgets it here",
		"git for-each-ref --format='delete %(refname)' refs/airlock/" + r.ID + " | git update-ref --stdin",
	}}
}

// abandon stops an airlock whose worktree is gone: nothing can land, and nobody sees its prison. What waits, waits. The
// caller holds the store's lock.
func (a *app) abandon(ctx context.Context, r *airlock.Record) error {
	if r.Phase != airlock.Running {
		return nil
	}
	if err := a.halt(ctx, *r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	return a.store.Save(*r)
}

// follow finds where an airlock has moved to while its daemon ran, whose working folder moved along. If it is not
// to be found its worktree is gone, or was copied elsewhere, and the prison ends, too: what it works in is nobody's.
func (a *app) follow(c *cli.Context, r airlock.Record) (*app, airlock.Record, error) {
	moved, err := open(c)
	if err == nil && moved.repo.InPlace() {
		if now, err := moved.here(c.Context); err == nil && now.Session == r.Session {
			return moved, now, nil
		}
	}
	if a.repo.Replaced() {
		return nil, r, nil // what is there now is none of ours
	}
	unlock, err := a.store.Lock(c.Context)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r, nil // the whole repository is gone
	}
	if err != nil {
		return nil, r, err
	}
	defer unlock()
	now, err := a.store.Load(r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, now, nil // cleared
	}
	if err != nil {
		return nil, now, err
	}
	if folder, err := workingFolder(); err == nil {
		now.Top = folder // the workspace may still be there
	}
	return nil, now, a.abandon(c.Context, &now)
}

// showLost says of an airlock whose worktree is not to be found how it can go on. One whose worktree is gone for good
// is stopped; the record is seen as stopped in any case.
func (a *app) showLost(ctx context.Context, r *airlock.Record) error {
	branch := gitops.Escape(r.BranchName())
	if !a.store.Orphan(*r) {
		ui.Say(a.message, "%s on %s: its worktree is not at %s", r.ID, branch, gitops.Escape(r.Top))
		ui.Hint(a.message, "git worktree repair <path>", "git worktree prune")
		r.Phase = airlock.Stopped
		return nil
	}
	if !a.dry {
		unlock, err := a.store.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := a.abandon(ctx, r); err != nil {
			return err
		}
	}
	ui.Say(a.message, "%s on %s: its worktree is gone; it goes on where its branch is checked out", r.ID, branch)
	ui.Hint(a.message, "git worktree add <path> "+gitops.Pasteable(r.BranchName()))
	r.Phase = airlock.Stopped
	return nil
}

// sweepOrphans clears the airlocks whose worktree and workspace are gone, if nothing of theirs waits. Only a clear does
// so: a folder that was moved away with both may come back.
func (a *app) sweepOrphans(ctx context.Context) error {
	records, err := a.store.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		if a.dry || !a.store.Orphan(r) || !a.store.WorkspaceGone(r) {
			continue
		}
		pending, err := a.repo.Ref(ctx, r.Ref("pending"))
		if err != nil {
			return err
		}
		if pending != "" {
			continue
		}
		if err := a.erase(ctx, r); err != nil {
			return err
		}
		ui.Say(a.message, "%s on %s: its worktree and workspace are gone, and nothing waits; it is cleared", r.ID, gitops.Escape(r.BranchName()))
	}
	return nil
}

// rebuild makes a workspace that somebody has removed anew, of what the inner main had when it was last exported. The
// prison is stopped.
func (a *app) rebuild(ctx context.Context, r *airlock.Record) error {
	// A daemon that has seen it gone does not look for another.
	if err := daemon.Stop(ctx, a.store, r.ID); err != nil {
		return err
	}
	tip, err := ledger.LastExported(a.store.Dir(r.ID))
	if err != nil {
		return err
	}
	if tip == "" {
		tip = r.Root
	}
	s, err := snapshot.Restore(ctx, gitops.OpenQuarantine(a.quarantine(*r), r.Format), tip, r.Ghost)
	if err != nil {
		return fmt.Errorf("make the workspace anew: %w", err)
	}
	spec, err := a.spec(*r)
	if err != nil {
		return err
	}
	b := a.backend(*r)
	isolation, err := startPrison(ctx, b, spec)
	if err == nil {
		isolated(r, isolation)
		r.Top = a.repo.Top
		err = a.fill(ctx, b, spec, s, nil)
	}
	if err != nil {
		// Half a workspace would be taken for the agent's.
		after := context.WithoutCancel(ctx)
		return errors.Join(fmt.Errorf("make the workspace anew: %w", err), b.Stop(after, spec), b.Wipe(after, spec))
	}
	ui.Say(a.message, "the workspace was gone; it is made anew of what the agent had committed on main")
	return a.includeAgain(ctx, *r)
}

// includeAgain puts into a workspace that was made anew what is not committed and goes in all the same, as it is now. What
// the agent has committed at such a path stays.
func (a *app) includeAgain(ctx context.Context, r airlock.Record) error {
	loose, err := a.included(ctx)
	if err != nil || len(loose) == 0 {
		return err
	}
	box, err := a.attach(ctx, r)
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
	ui.Say(a.message, "%s that git does not track went in again (%s)%s", ui.Count(len(loose), "file"), includeName, but)
	return nil
}
