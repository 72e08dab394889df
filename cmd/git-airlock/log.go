package main

import (
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/promote"
)

func logCommand() *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "git log with the provenance of landed commits",
		UsageText:   "git airlock log [git log options]",
		Description: "Takes every option of git log. What would move the cursor or hide text is escaped.\n\n" + exitStatusHelp,
		// The options are git's.
		SkipFlagParsing: true,
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				return cli.ShowSubcommandHelp(c)
			}
			a, err := open(c)
			if err != nil {
				return err
			}
			return a.log(c.Context, args)
		},
	}
}

// log shows the log through the pager git would use.
func (a *app) log(ctx context.Context, args []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	colour := false
	out, wait := io.Writer(os.Stdout), func() error { return nil }
	if term.IsTerminal(int(os.Stdout.Fd())) {
		if colour, err = a.config.Colour("color.ui"); err != nil {
			return err
		}
		if out, wait, err = a.page(ctx); err != nil {
			return err
		}
	}
	err = a.repo.Log(ctx, cwd, out, colour, append([]string{"--notes=" + promote.NotesRef}, args...)...)
	if waitErr := wait(); err == nil {
		err = waitErr
	}
	return err
}

// page starts the pager. wait closes its input and waits for it.
func (a *app) page(ctx context.Context) (out io.Writer, wait func() error, err error) {
	pager, err := a.repo.Pager(ctx)
	if err != nil || pager == "" || pager == "cat" {
		return os.Stdout, func() error { return nil }, err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Env = os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // as git does, git-config(1) core.pager
		if _, set := os.LookupEnv(name); !set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return in, func() error {
		_ = in.Close()
		return cmd.Wait()
	}, nil
}
