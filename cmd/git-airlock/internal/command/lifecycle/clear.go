package lifecycle

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

func clearCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "clear", Usage: "land pending commits, then remove prison, workspace and refs",
		UsageText: "git airlock clear [--discard-pending | --remains=ID]",
		Description: "Landed commits and their notes stay. clear refuses (exit status 3) if commits or uncommitted changes of the agent would\n" +
			"be lost, also in its other worktrees (git worktree add, also in its home) and in repositories of its own in the\n" +
			"workspace, or if the evidence about landed commits cannot be written. Files that git ignores, and repositories in its\n" +
			"home, are not looked at. If the state of an airlock was removed or is damaged, --remains removes the rest of that\n" +
			"airlock: its prison, workspace and refs. git airlock doctor names such airlocks.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: session.DiscardFlag, Usage: "discard pending commits, uncommitted changes of the agent, and evidence that cannot be written"},
			&cli.StringFlag{Name: session.RemainsFlag, Usage: "remove what is left of the airlock `ID`, whose state is gone or damaged"},
		},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			if c.IsSet(session.RemainsFlag) {
				if c.Bool(session.DiscardFlag) {
					return ui.Usagef("clear: --%s and --%s exclude each other", session.DiscardFlag, session.RemainsFlag)
				}
				return s.ClearRemains(c.Context, c.String(session.RemainsFlag))
			}
			return s.Clear(c.Context, c.Bool(session.DiscardFlag))
		}),
	}, cmdline.Takes{})
}
