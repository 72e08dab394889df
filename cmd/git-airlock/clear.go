package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

const discardFlag = "discard-pending"

func clearCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "clear", Usage: "land what can land, then remove prison, workspace and refs",
		UsageText:   "git airlock clear [--discard-pending]",
		Description: "Landed commits and their notes stay. Refuses (exit status 3) while anything would be lost.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: discardFlag, Usage: "lose what has not landed and what is not committed"}},
		Action: inRepository(func(c *cli.Context, a *app) error {
			r, err := a.store.Here()
			if err != nil {
				return err
			}
			if r != nil {
				return a.clear(c.Context, *r, c.Bool(discardFlag))
			}
			unlock, err := a.lock(c.Context)
			if err != nil {
				return err
			}
			defer unlock()
			return errors.Join(errNoAirlock, a.sweepOrphans(c.Context))
		}),
	}, inside, false)
}

// clear removes an airlock once nothing of it would be lost, or if it may be.
func (a *app) clear(ctx context.Context, r airlock.Record, discard bool) error {
	if a.dry {
		ui.Say(a.message, "would remove airlock %s on %s with its workspace %s", r.ID, gitops.Escape(r.BranchName()), r.Workspace)
		return nil
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if r, err = a.store.Load(r.ID); errors.Is(err, fs.ErrNotExist) {
		return errNoAirlock
	} else if err != nil {
		return err
	}
	if r.Phase == airlock.Running || r.Phase == airlock.Stopped {
		if err := a.letGo(ctx, &r, discard); err != nil {
			return err
		}
	}
	r.Phase = airlock.Clearing
	if err := a.note(r); err != nil {
		return err
	}
	if err := a.erase(context.WithoutCancel(ctx), r); err != nil {
		return err
	}
	ui.Say(a.message, "%s is cleared; what landed on %s stays", r.ID, gitops.Escape(r.BranchName()))
	return nil
}

// note writes down how far clearing has come, unless there is no room: what takes it may be the workspace.
func (a *app) note(r airlock.Record) error {
	if err := a.store.Save(r); !gitops.NoRoom(err) {
		return err
	}
	return nil
}

// letGo stops an airlock of which nothing would be lost, or may be; else it refuses and changes nothing.
func (a *app) letGo(ctx context.Context, r *airlock.Record, discard bool) error {
	firm := context.WithoutCancel(ctx) // nothing is half stopped
	if discard {
		a.landFirst(ctx, *r)
		if err := errors.Join(ctx.Err(), a.halt(firm, *r)); err != nil {
			return err
		}
		return a.mendHalf(ctx, r)
	}
	if err := errors.Join(a.losses(ctx, *r), ctx.Err()); err != nil {
		return err
	}
	if err := a.halt(firm, *r); err != nil {
		return err
	}
	// The agent may have gone on until a moment ago.
	if r.Phase == airlock.Running {
		r.Phase = airlock.Stopped
		if err := a.note(*r); err != nil {
			return err
		}
		err := errors.Join(a.losses(ctx, *r), ctx.Err())
		if err != nil {
			ui.Say(a.message, "%s on %s is stopped; nothing of it is removed", r.ID, gitops.Escape(r.BranchName()))
		}
		return err
	}
	return nil
}

// landFirstTime bounds what is tried of a workspace that is to be thrown away: it may be why it is.
const landFirstTime = 10 * time.Second

// landFirst lands what can land, and says what goes with the rest. Whatever hinders it is no reason to keep what is not wanted.
func (a *app) landFirst(ctx context.Context, r airlock.Record) {
	ctx, cancel := context.WithTimeout(ctx, landFirstTime)
	defer cancel()
	engine := a.engine(r)
	defer engine.Close()
	outcome, err := drain(ctx, engine, promote.Options{})
	if err != nil {
		return
	}
	var lost []string
	if outcome.Pending > 0 {
		lost = append(lost, ui.Count(outcome.Pending, "pending commit"))
	}
	if state, err := engine.State(ctx); err == nil {
		if state.Uncommitted > 0 {
			lost = append(lost, ui.Count(state.Uncommitted, "change")+" not committed")
		}
		for _, w := range state.Waiting {
			lost = append(lost, ui.Count(w.Commits, "commit")+" on "+w.Ref)
		}
	}
	if len(lost) > 0 {
		ui.Say(a.message, "discarded: %s", strings.Join(lost, ", "))
	}
}

// mendHalf sees to it that no landing is half done, which nobody could finish or take back once its journal is removed.
func (a *app) mendHalf(ctx context.Context, r *airlock.Record) error {
	engine := a.engine(*r)
	defer engine.Close()
	hold, err := engine.RecoverOrHold(ctx)
	if gitops.NoRoom(err) { // what takes it may be the workspace, which goes in any case
		if err = a.wipe(ctx, *r); err == nil {
			hold, err = engine.RecoverOrHold(ctx)
		}
	}
	var refused *refusal
	switch {
	case errors.Is(err, gitops.ErrUnsettled):
		refused = &refusal{err.Error(), nil}
	case err == nil && hold == nil:
		return nil
	case err == nil:
		refused = &refusal{hold.Message, hold.Next}
	case ctx.Err() == nil && !errors.Is(err, airlock.ErrBusy):
		refused = a.hindered(err)
	}
	if refused != nil {
		err = &refusal{"half a landing would stay: " + refused.text, append(refused.hints, "git airlock clear --"+discardFlag)}
	}
	if r.Phase == airlock.Running {
		r.Phase = airlock.Stopped
		ui.Say(a.message, "%s on %s is stopped; nothing of it is removed", r.ID, gitops.Escape(r.BranchName()))
	}
	return errors.Join(err, a.note(*r))
}

// hindered says what to do about what keeps half a landing from being finished or taken back.
func (a *app) hindered(err error) *refusal {
	if gitops.NoRoom(err) {
		return &refusal{"no space left on the device of the repository", []string{"df -h " + gitops.Pasteable(a.repo.CommonDir)}}
	}
	return &refusal{gitops.Escape(err.Error()), nil}
}

// losses lands what can land and returns a [refusal] that says what would be lost.
func (a *app) losses(ctx context.Context, r airlock.Record) error {
	discard := "git airlock clear --" + discardFlag + "  # loses it"
	engine := a.engine(r)
	defer engine.Close()
	outcome, err := drain(ctx, engine, promote.Options{})
	var state promote.State
	if err == nil {
		state, err = engine.State(ctx) // of a workspace that is gone it says nothing: there is nothing to lose
	}
	var refused *refusal
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return &refusal{"what is in the workspace cannot be seen: " + err.Error(), []string{discard}}
	case errors.As(heldIn(outcome), &refused):
		refused.hints = append(refused.hints, "git airlock clear", discard)
		return refused
	case state.Uncommitted > 0:
		hints := []string{"git airlock visit -- git status", "git airlock promote --rescue  # keeps it, as a commit", discard}
		if r.Phase != airlock.Running {
			hints = append([]string{"git airlock start"}, hints...)
		}
		return &refusal{ui.Count(state.Uncommitted, "change") + " in the workspace would be lost: not committed", hints}
	case len(state.Waiting) > 0:
		w, hints := state.Waiting[0], []string{bringHome(state.Waiting[0]), discard}
		if r.Phase != airlock.Running {
			hints = append([]string{"git airlock start"}, hints...)
		}
		return &refusal{fmt.Sprintf("%s on %s would be lost: only main lands", ui.Count(w.Commits, "commit"), w.Ref), hints}
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
func (a *app) erase(ctx context.Context, r airlock.Record) error {
	if _, err := os.Lstat(a.store.Dir(r.ID)); errors.Is(err, fs.ErrNotExist) {
		return nil // it is the first thing made, and the last removed
	}
	if err := a.halt(ctx, r); err != nil {
		return err
	}
	if err := a.wipe(ctx, r); err != nil {
		return err
	}
	err := a.store.Remove(ctx, r)
	if errors.Is(err, context.Canceled) { // the terminal's ^C meant for us has killed a git of ours
		err = a.store.Remove(ctx, r)
	}
	return err
}

// wipe removes the workspace of a prison that does not run, and all that the prison has.
func (a *app) wipe(ctx context.Context, r airlock.Record) error {
	spec, err := a.spec(r)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(spec.Dir); err != nil {
		return nil //nolint:nilerr // there is no prison
	}
	line := ui.NewProgress("removing the workspace")
	defer line.Close()
	if err := a.backend(r).Wipe(ctx, spec); err != nil {
		return fmt.Errorf("remove workspace %q: %w", spec.Workspace, err)
	}
	return nil
}
