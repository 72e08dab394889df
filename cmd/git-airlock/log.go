package main

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/manual"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote"
)

func logCommand() *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "git log with the provenance of landed commits",
		UsageText:   "git airlock log [git log options]",
		Description: "Takes every option of git log. What would move the cursor or hide text is escaped.",
		// The options are git's.
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				pageOf(c).Help(c.App.Writer, manual.WidthOf(c.App.Writer))
				return nil
			}
			return inRepository(func(c *cli.Context, s *session.Session) error { return showGitLog(c.Context, s, args) })(c)
		},
	}
}

// showGitLog shows the log through the pager git would use.
func showGitLog(ctx context.Context, s *session.Session, args []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	return show(ctx, s, "log", true, func(out io.Writer, p ui.Paint) error {
		err := s.Repo.Log(ctx, cwd, out, bool(p), append([]string{"--notes=" + promote.NotesRef}, args...)...)
		if err != nil {
			err = gitSaid{err}
		}
		return err
	})
}
