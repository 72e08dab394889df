package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
)

func main() {
	inside.Reexec() // does not return in a process that is part of a prison; a native one's never comes here
	if cwd, err := os.Getwd(); err == nil {
		hostenv.Enter(cwd)
	}
	os.Exit(run(os.Args))
}

// run runs one command line and returns its exit status.
func run(argv []string) int {
	syscall.Umask(syscall.Umask(0) &^ 0o700) // we use what we make
	session.KeepDescriptors()
	ctx, stop := untilSignal()
	defer stop()
	own, inside := splitCommand(argv)
	messages := ui.NewMessages(os.Stderr, func() gitops.Config { return session.CurrentConfig(ctx) })
	app := newCLI(inside)
	app.ErrWriter = messages
	app.Metadata = map[string]any{wordsKey: own[1:]}
	return report(messages, bySignal(ctx, orWriteError(app.RunContext(ctx, own))))
}

// splitCommand splits an argument list at the first "--": what follows is the agent's command, whose options are
// none of ours. For git log it is part of its arguments.
func splitCommand(argv []string) (own, inside []string) {
	i := slices.Index(argv, "--")
	if i < 0 || slices.Contains(argv[:i], "log") {
		return argv, nil
	}
	return argv[:i], append([]string{}, argv[i+1:]...)
}

// newCLI describes the command line. inside is the command for the prison: nil without "--".
func newCLI(inside []string) *cli.App {
	cli.HelpFlag = nil // -h is an option like others, see showHelp
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "git-airlock version", versionText()) }
	app := &cli.App{
		Name:                   "git airlock",
		Usage:                  "let a coding agent work on a snapshot and land what it commits",
		UsageText:              "git airlock [--dry-run] <command> [options] [-- COMMAND...]",
		Version:                versionText(),
		UseShortOptionHandling: true,
		// Values have commas of their own: paths, environment variables.
		DisableSliceFlagSeparator: true,
		Flags:                     []cli.Flag{dryRunFlag, helpFlag},
		HideHelp:                  true,
		Before:                    showHelp,
		Writer:                    ui.Stdout,
		OnUsageError:              onUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // statuses are decided in one place, see report
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return noCommand(appPage(c.App), c.Args().First())
			}
			appPage(c.App).Help(c.App.Writer, manual.WidthOf(c.App.Writer))
			return told{errNothingAsked}
		},
		Commands: []*cli.Command{
			initCommand(inside), startCommand(inside), visitCommand(inside), runCommand(inside), statusCommand(inside), promoteCommand(inside),
			stopCommand(inside), clearCommand(inside), listCommand(inside), doctorCommand(inside), selftestCommand(inside),
			policyCommand(inside), imageCommand(inside), scanCommand(inside), logCommand(), daemonCommand(inside),
			manualCommand(), completionCommand(), completeCommand(inside), helpCommand(),
		},
	}
	for _, c := range app.Commands {
		addHelp(c)
	}
	return app
}

// addHelp gives a command, and those below it, the option -h.
func addHelp(c *cli.Command) {
	c.HideHelp, c.HideHelpCommand, c.OnUsageError, c.Before = true, true, onUsageError, showHelp
	c.Flags = append(c.Flags, helpFlag)
	for _, sub := range c.Subcommands {
		addHelp(sub)
	}
}

var (
	dryRunFlag = &cli.BoolFlag{Name: "dry-run", Usage: "print what would be done and change nothing"}
	helpFlag   = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}
	jsonFlag   = &cli.BoolFlag{Name: "json", Usage: "print one JSON document"}
)

// command gives a command what most have: --dry-run, errors of ours for wrong flags, no stray arguments.
// takes says whether it takes a command for the prison.
func command(c *cli.Command, inside []string, takes bool) *cli.Command {
	action := c.Action
	c.UseShortOptionHandling = true
	c.Flags = append(c.Flags, dryRunFlag)
	c.Action = func(ctx *cli.Context) error {
		switch {
		case ctx.Args().Present():
			return ui.Within(commandName(ctx), unexpected(c, ctx.Args().First(), takes))
		case inside != nil && !takes:
			return ui.Within(commandName(ctx), ui.Usagef("%s takes no command", c.Name))
		case inside != nil && len(inside) == 0:
			return ui.Within(commandName(ctx), ui.Usagef("%s: no command after \"--\"", c.Name))
		case inside != nil && inside[0] == "":
			return fmt.Errorf(`"": %w`, prison.ErrNotFound) // before anything is made for it
		}
		return ui.Within(commandName(ctx), asUsageError(action(ctx)))
	}
	return c
}

// asUsageError makes an error about the usage of what no machine could give, unless somebody knows better what to type next.
func asUsageError(err error) error {
	var request *session.RequestError
	if errors.As(err, &request) && !is[*environment.Advised](err) && !is[ownFailure](err) {
		return ui.Usagef("%s", err)
	}
	return err
}

// unexpected is about a word that a command does not take.
func unexpected(c *cli.Command, word string, takes bool) error {
	switch {
	case len(c.Subcommands) > 0:
		return noCommand(commandPage("git airlock", c), word)
	case takes:
		return ui.Usagef("%s: unexpected argument %q; a command for the prison goes after \"--\"", c.Name, word)
	}
	return ui.Usagef("%s: unexpected argument %q", c.Name, word)
}
