package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
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
	syscall.Umask(syscall.Umask(0) &^ 0o700) // the program needs access to the files that it creates
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

// splitCommand splits the arguments at the first "--". The agent's command follows it, with its own options. For git log, "--" is an
// argument.
func splitCommand(argv []string) (own, inside []string) {
	i := slices.Index(argv, "--")
	if i < 0 || slices.Contains(argv[:i], "log") {
		return argv, nil
	}
	return argv[:i], append([]string{}, argv[i+1:]...)
}

// newCLI describes the command line. inside is the command for the prison: nil without "--".
func newCLI(inside []string) *cli.App {
	cli.HelpFlag = nil // -h is an ordinary option, see showHelp
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "git-airlock version", versionText()) }
	app := &cli.App{
		Name:                   "git airlock",
		Usage:                  "let a coding agent work on a snapshot, and land its commits",
		UsageText:              "git airlock [--dry-run] <command> [options] [-- COMMAND...]",
		Version:                versionText(),
		UseShortOptionHandling: true,
		// Values such as paths and variables can contain commas.
		DisableSliceFlagSeparator: true,
		Flags:                     []cli.Flag{dryRunFlag, helpFlag},
		HideHelp:                  true,
		Before:                    showHelp,
		Writer:                    ui.Stdout,
		OnUsageError:              onUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // exitStatus assigns all statuses
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
			policyCommand(inside), imageCommand(inside), scanCommand(inside), netCommand(inside), logCommand(), daemonCommand(inside),
			manualCommand(), completionCommand(), completeCommand(inside), helpCommand(),
		},
	}
	for _, c := range app.Commands {
		addHelp(c)
	}
	return app
}

// addHelp adds the option -h to a command and its subcommands.
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

// command adds the common parts of commands: --dry-run, usage errors, and a check for unexpected arguments. takes is true for
// commands that take a command for the prison.
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
			return fmt.Errorf(`"": %w`, prison.ErrNotFound) // before a prison is started for it
		}
		return ui.Within(commandName(ctx), asUsageError(action(ctx)))
	}
	return c
}

// asUsageError converts an error about an impossible request to a usage error, unless the error has its own hints.
func asUsageError(err error) error {
	var request *session.RequestError
	if errors.As(err, &request) && !is[*environment.Advised](err) && !is[ownFailure](err) {
		return ui.Usagef("%s", err)
	}
	return err
}

// unexpected returns the error for an argument that a command does not take.
func unexpected(c *cli.Command, word string, takes bool) error {
	switch {
	case len(c.Subcommands) > 0:
		return noCommand(commandPage("git airlock", c), word)
	case takes:
		return ui.Usagef("%s: unexpected argument %q; a command for the prison goes after \"--\"", c.Name, word)
	}
	return ui.Usagef("%s: unexpected argument %q", c.Name, word)
}

// version is set by scripts/release, for builds from sources outside of a git checkout.
var version string

// versionText returns the version with platform and build tags: "1.2.0 (linux/amd64, libgit2)". A build by hand has the version of its
// commit.
func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version // from the tag, if go build found git
	}
	with := ""
	if v == "" || v == "(devel)" {
		// Go records a commit only in a clone, and not with -buildvcs=false.
		v, with = "unknown", ", built without its commit"
	}
	if strings.Contains(","+buildSetting("-tags")+",", ",libgit2,") {
		with += ", libgit2"
	}
	return fmt.Sprintf("%s (%s/%s%s)", strings.TrimPrefix(v, "v"), runtime.GOOS, runtime.GOARCH, with)
}

// buildSetting returns a build setting that Go recorded.
func buildSetting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
