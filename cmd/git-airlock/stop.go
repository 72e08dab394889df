package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

func stopCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "stop", Usage: "land what can land, stop the daemon and the prison, keep the workspace",
		UsageText:   "git airlock stop",
		Description: "\"git airlock start\" resumes the same workspace.",
		Action: onAirlock(func(c *cli.Context, a *app, r airlock.Record) error {
			err := a.stop(c.Context, r)
			var refused *refusal
			if errors.As(err, &refused) {
				// Stopped it is, as asked; what is held waits with it.
				ui.Say(a.message, "%s", refused.text)
				return nil
			}
			return err
		}),
	}, inside, false)
}

// stop stops prison and daemon, then lands what the agent had committed by then. A [refusal] says that
// something is held; the airlock is stopped all the same.
func (a *app) stop(ctx context.Context, r airlock.Record) error {
	if a.dry {
		ui.Say(a.message, "would stop %s on %s", r.ID, gitops.Escape(r.BranchName()))
		return nil
	}
	before, err := ledger.TotalLanded(a.store.Dir(r.ID))
	if err != nil {
		return err
	}
	unlock, err := a.store.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return a.stopLocked(ctx, r, before)
}

// stopLocked does so for a caller that holds the store's lock, and says how many commits have landed since there were so
// many before.
func (a *app) stopLocked(ctx context.Context, r airlock.Record, before int) error {
	r, err := a.current(r)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	firm := context.WithoutCancel(ctx) // from here on it is stopped, whole
	if err := a.halt(firm, r); err != nil {
		return err
	}
	r.Phase = airlock.Stopped
	if err := a.store.Save(r); gitops.NoRoom(err) {
		ui.Say(a.message, "it is stopped; that cannot be written down: %s", gitops.Escape(err.Error()))
		ui.Hint(a.message, hints(err)...)
	} else if err != nil {
		return err
	}
	// Whoever looked meanwhile has found it dead, and brought it back.
	if err := daemon.Stop(firm, a.store, r.ID); err != nil {
		return err
	}
	if err := a.store.StopAfterUse(r.ID, false); err != nil {
		return err
	}
	engine := a.engine(r)
	defer engine.Close()
	outcome, err := drain(ctx, engine, promote.Options{})
	var state promote.State
	var unseen error
	if err == nil {
		state, unseen = engine.State(ctx)
	}
	switch {
	case errors.Is(unseen, context.Canceled):
		err = unseen
	case unseen != nil: // it is stopped all the same
		ui.Say(a.message, "what the agent has not committed cannot be seen: %s", unseen)
	case state.Uncommitted > 0:
		ui.Say(a.message, "the workspace keeps %s that the agent has not committed", ui.Count(state.Uncommitted, "change"))
	}
	ui.Say(a.message, "%s on %s is stopped", r.ID, gitops.Escape(r.BranchName()))
	if err != nil {
		return err
	}
	return a.tell(r, outcome, before)
}

// halt ends daemon and prison.
func (a *app) halt(ctx context.Context, r airlock.Record) error {
	line := ui.NewProgress("stopping")
	defer line.Close()
	if err := daemon.Stop(ctx, a.store, r.ID); err != nil {
		return err
	}
	spec, err := a.spec(r)
	if err != nil {
		return err
	}
	if err := a.backend(r).Stop(ctx, spec); err != nil {
		return err
	}
	if _, err := a.shut(ctx, r); err != nil {
		ui.Say(a.message, "the workspace %s is open to other users of this host, or closed to the agent: %s", r.Workspace, gitops.Escape(err.Error()))
	}
	return nil
}

// shutTime bounds a command inside that takes an instant.
const shutTime = 10 * time.Second

// workspaceMode is that of a workspace: its owner's, the agent's, and nobody else's.
const workspaceMode = 0o700

// shut takes from a workspace what its owner, the agent, has given to others of the host, gives back what they have taken from
// themselves, without which no command can begin there and no commit come out, and tells whether there was anything. Only the
// owner can: root does it for them, anybody else in the prison.
func (a *app) shut(ctx context.Context, r airlock.Record) (changed bool, err error) {
	spec, err := a.spec(r)
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(spec.Workspace)
	if err != nil || !info.IsDir() || info.Mode().Perm() == workspaceMode {
		return false, nil //nolint:nilerr // what is not there is not open
	}
	if os.Geteuid() == 0 {
		err := os.Chmod(spec.Workspace, workspaceMode) // the folder above is the user's: nobody puts a link in its place
		if closed := info.Mode().Perm()&workspaceMode != workspaceMode; err != nil || !closed {
			return true, err
		}
		// The overlay through which a prison sees the folder keeps the mode that was set in it.
	}
	ctx, cancel := context.WithTimeout(ctx, shutTime)
	defer cancel()
	box, err := a.attachAnyway(ctx, r)
	if errors.Is(err, prison.ErrNotRunning) {
		box, err = a.backend(r).Open(ctx, spec)
	}
	if err != nil {
		return true, err
	}
	defer box.Close()
	status, err := box.Exec(ctx, prison.Process{Argv: []string{"chmod", strconv.FormatInt(workspaceMode, 8), prison.Workspace}, Dir: "/"})
	if err == nil && status != 0 {
		err = fmt.Errorf("chmod: exit status %d", status)
	}
	return true, err
}
