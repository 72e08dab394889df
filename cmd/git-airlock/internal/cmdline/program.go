package cmdline

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

// The keys of the program's metadata.
const (
	typedKey  = "typed"  // the words after "git airlock", which errors quote
	insideKey = "inside" // the command for the prison
)

// Program describes the command line of the program.
func Program(version string, commands []*cli.Command) *cli.App {
	cli.HelpFlag = nil // -h is an ordinary option, see showHelp
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "git-airlock version", c.App.Version) }
	app := &cli.App{
		Name:                   "git airlock",
		Usage:                  "let a coding agent work on a snapshot, and land its commits",
		UsageText:              "git airlock [--dry-run] <command> [options] [-- COMMAND...]\n   git airlock help [COMMAND | TOPIC]",
		Version:                version,
		UseShortOptionHandling: true,
		// Values such as paths and variables can contain commas.
		DisableSliceFlagSeparator: true,
		Flags:                     []cli.Flag{dryRunFlag, helpFlag},
		HideHelp:                  true,
		Before:                    showHelp,
		Writer:                    ui.Stdout,
		OnUsageError:              onUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // ExitStatus assigns all statuses
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return NoCommand(ProgramPage(c.App), c.Args().First())
			}
			ProgramPage(c.App).Help(c.App.Writer, manual.WidthOf(c.App.Writer))
			return Shown(errNothingAsked)
		},
		Commands: commands,
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

// Run runs one command line of the program and returns its exit status.
func Run(app *cli.App, argv []string) int {
	syscall.Umask(syscall.Umask(0) &^ 0o700) // the program needs access to the files that it creates
	daemon.KeepDescriptors()
	ctx, stop := untilSignal()
	defer stop()
	own, inside := splitCommand(argv)
	own = withoutValue(own)
	messages := ui.NewMessages(os.Stderr, func() gitops.Config { return session.CurrentConfig(ctx) })
	app.ErrWriter = messages
	app.Metadata = map[string]any{typedKey: own[1:], insideKey: inside}
	return report(messages, bySignal(ctx, orWriteError(app.RunContext(ctx, own))))
}

// withoutValue gives an empty value to an option that has one only after "=": review --tool. Without it, the option would take the
// next word.
func withoutValue(own []string) []string {
	if i := slices.Index(own, "--tool"); i >= 0 && commandIn(own, 0) == "review" {
		own = slices.Clone(own)
		own[i] += "="
	}
	return own
}

// splitCommand splits the arguments at the first "--". The agent's command follows it, with its own options. For git log, "--" is an
// argument.
func splitCommand(argv []string) (own, inside []string) {
	i := slices.Index(argv, "--")
	if i < 0 || commandIn(argv[:i], 0) == "log" || commandIn(argv[:i], 0) == "net" && commandIn(argv[:i], 1) == "log" {
		return argv, nil
	}
	return argv[:i], append([]string{}, argv[i+1:]...)
}

// commandIn returns the command of a command line, or with n its nth word after that. The options before the command have no values.
func commandIn(argv []string, n int) string {
	for _, word := range argv[min(1, len(argv)):] {
		switch {
		case strings.HasPrefix(word, "-"):
		case n == 0:
			return word
		default:
			n--
		}
	}
	return ""
}
