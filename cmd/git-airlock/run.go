package main

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

func runCommand(inside []string) *cli.Command {
	return apart(command(&cli.Command{
		Name: "run", Usage: "run a command in a prison to its end and land what it commits",
		UsageText:   "git airlock run [options] -- COMMAND...",
		Description: "Uses the running airlock, or starts one; the last run in it stops it afterwards.",
		Flags:       startFlags(),
		Action: inRepository(func(c *cli.Context, a *app) error {
			if len(inside) == 0 {
				return ui.Usagef("run: which command? git airlock run -- COMMAND...")
			}
			request, err := a.request(c, nil)
			if err != nil {
				return err
			}
			return a.run(c.Context, request, inside)
		}),
	}, inside, true))
}

// run starts an airlock if none runs, runs the command, promotes, and stops what it started.
func (a *app) run(ctx context.Context, request startRequest, argv []string) error {
	brokenPipe()
	r, leave, err := a.ensure(ctx, request)
	if ctx.Err() != nil && r.ID != "" && a.store.StopsAfterUse(r.ID) {
		err = errors.Join(ctx.Err(), a.goOut(context.WithoutCancel(ctx), r, 0))
	}
	if err != nil {
		return err
	}
	if a.dry {
		ui.Say(a.message, "would run %q in the prison and promote what it commits", argv)
		return nil
	}
	defer leave()
	before, err := ledger.TotalLanded(a.store.Dir(r.ID))
	if err != nil {
		return err
	}
	ran := a.visit(ctx, r, argv)
	leave()
	// Whatever became of the command, what it committed is promoted, and what we started is stopped.
	held := a.goOut(context.WithoutCancel(ctx), r, before)
	if errors.Is(ran, syscall.EPIPE) {
		return errUnread
	}
	if ran != nil {
		return ran
	}
	var refused *refusal
	if errors.As(held, &refused) {
		ui.Say(a.message, "%s", refused.text)
		ui.Hint(a.message, refused.hints...)
		return childStatus(3)
	}
	return held
}

// goOut stops what a run has started, if nobody else runs anything in it, and promotes in any case.
func (a *app) goOut(ctx context.Context, r airlock.Record, before int) error {
	if !a.store.StopsAfterUse(r.ID) {
		return a.promote(ctx, r, promote.Options{}, before)
	}
	unlock, err := a.store.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := a.store.LastOut(r.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errCleared
	case errors.Is(err, airlock.ErrBusy):
		ui.Say(a.message, "%s on %s goes on: another command runs in it", r.ID, gitops.Escape(r.BranchName()))
		unlock()
		return a.promote(ctx, r, promote.Options{}, before)
	case err != nil:
		return err
	}
	defer done()
	return a.stopLocked(ctx, r, before)
}

// ensure returns the running airlock, or starts one. Until leave is called no other run stops it.
func (a *app) ensure(ctx context.Context, request startRequest) (r airlock.Record, leave func(), err error) {
	for tries := 3; ; tries-- {
		if r, err = a.running(ctx, request); err != nil || a.dry {
			return r, nil, err
		}
		if leave, err = a.store.Use(ctx, r.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, nil, err
		}
		if err == nil {
			runs, err := a.prisonRuns(ctx, r)
			if err == nil && (runs || tries == 0) {
				return r, leave, nil
			}
			leave()
			if err != nil {
				return r, nil, err
			}
			// The last one out has just stopped it.
		} else if tries == 0 {
			return r, nil, errCleared
		}
	}
}

// running returns the running airlock, or starts one, which is then stopped by the last one out.
func (a *app) running(ctx context.Context, request startRequest) (airlock.Record, error) {
	before, err := a.store.Here()
	if err != nil {
		return airlock.Record{}, err
	}
	if before != nil && before.Phase == airlock.Running {
		runs, err := a.prisonRuns(ctx, *before)
		if runs {
			a.late(*before, request)
		}
		if err != nil || runs {
			return *before, errors.Join(err, a.heal(ctx, *before))
		}
	}
	request.forRun = true
	r, started, err := a.start(ctx, request)
	var failed *commandError
	if errors.As(err, &failed) && started {
		err = errors.Join(err, a.stop(context.WithoutCancel(ctx), r))
	}
	return r, err
}
