package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func runCommand(inside []string) *cli.Command {
	return apart(command(&cli.Command{
		Name: "run", Usage: "run a command in a prison to its end and land what it commits",
		UsageText:   "git airlock run [options] -- COMMAND...",
		Description: "Uses the running airlock, or starts one and stops it afterwards.\n\n" + exitStatusHelp,
		Flags:       startFlags(),
		Action: inRepository(func(c *cli.Context, a *app) error {
			if len(inside) == 0 {
				return usagef("run: which command? git airlock run -- COMMAND...")
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
	r, ours, err := a.ensure(ctx, request)
	var failed *commandError
	if errors.As(err, &failed) && ours {
		return errors.Join(err, a.stop(context.WithoutCancel(ctx), r))
	}
	if err != nil {
		return err
	}
	if a.dry {
		say(a.message, "would run %q in the prison and promote what it commits", argv)
		return nil
	}
	before, err := promote.TotalLanded(a.store.Dir(r.ID))
	if err != nil {
		return err
	}
	ran := a.visit(ctx, r, argv)
	// Whatever became of the command, what it committed is promoted, and what we started is stopped.
	after := context.WithoutCancel(ctx)
	var held error
	if ours {
		held = a.stopSince(after, r, before)
	} else {
		held = a.promote(after, r, promote.Options{Land: true}, before)
	}
	if ran != nil {
		return ran
	}
	var refused *refusal
	if errors.As(held, &refused) {
		say(a.message, "%s", refused.text)
		hint(a.message, refused.hints...)
		return childStatus(3)
	}
	return held
}

// ensure returns the running airlock, or starts one: ours.
func (a *app) ensure(ctx context.Context, request startRequest) (r airlock.Record, ours bool, err error) {
	before, err := a.store.Here()
	if err != nil {
		return r, false, err
	}
	if before != nil && before.Phase == airlock.Running {
		runs, err := a.prisonRuns(ctx, *before)
		if runs {
			a.late(request)
		}
		if err != nil || runs {
			return *before, false, errors.Join(err, a.heal(ctx, *before))
		}
	}
	r, err = a.start(ctx, request)
	return r, true, err
}
