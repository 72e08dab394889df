package main

import (
	"context"
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func visitCommand(inside []string) *cli.Command {
	return apart(command(&cli.Command{
		Name: "visit", Usage: "open a shell, or run a command, in the running prison as the agent",
		UsageText: "git airlock visit [-- COMMAND...]\ngit airlock visit --attach | --log",
		Description: "With a terminal where there is one, else with plain pipes. Never starts a prison. Ends with the command:\n" +
			"what that leaves running goes on, and its output is shown until it is silent for a moment.\n" +
			"With --attach, joins the terminal of the command that \"start -- COMMAND\" launched, and ends with its status; on a terminal\n" +
			"^] detaches, and the command goes on. With --log, prints the last megabyte or two of what it showed, as plain text, also\n" +
			"when it has ended or the prison is stopped.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "attach", Usage: "join the terminal of the launched command"},
			&cli.BoolFlag{Name: "log", Usage: "print what the launched command showed last"},
		},
		Action: onAirlock(func(c *cli.Context, a *app, r airlock.Record) error {
			join, log := c.Bool("attach"), c.Bool("log")
			if join && log || (join || log) && inside != nil {
				return ui.Usagef("visit: --attach, --log and a command exclude each other")
			}
			if err := a.heal(c.Context, r); err != nil {
				return err
			}
			switch {
			case join:
				return a.join(c.Context, r)
			case log:
				return a.showLog(c.Context, r)
			}
			return a.visit(c.Context, r, inside)
		}),
	}, inside, true))
}

// apart keeps the failures of a command's own, wrong usage among them, apart from the statuses of what it runs.
func apart(c *cli.Command) *cli.Command {
	action, wrongUsage := c.Action, c.OnUsageError
	c.Action = func(ctx *cli.Context) error {
		err := action(ctx)
		var child childStatus
		if err == nil || errors.As(err, &child) {
			return err
		}
		return ownFailure{err}
	}
	c.OnUsageError = func(ctx *cli.Context, err error, isSubcommand bool) error {
		return ownFailure{wrongUsage(ctx, err, isSubcommand)}
	}
	return c
}

// shell is the agent's own.
var shell = []string{"/bin/sh", "-c", `exec "${SHELL:-/bin/sh}"`}

// visit runs a command in the prison with our standard streams; its status is returned as a [childStatus].
func (a *app) visit(ctx context.Context, r airlock.Record, argv []string) error {
	if len(argv) == 0 {
		argv = shell
	}
	box, err := a.attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if a.dry {
		ui.Say(a.message, "would run %q in the prison of %s", argv, r.ID)
		return nil
	}
	p := prison.Process{Argv: argv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	restore, err := connectTerminal(&p)
	if err != nil {
		return err
	}
	status, err := box.Exec(ctx, p)
	restore()
	if err != nil {
		return err
	}
	if status != 0 {
		return childStatus(status)
	}
	return nil
}
