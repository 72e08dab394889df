package lifecycle

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
)

func clearCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "clear", Usage: "land pending commits, then remove prison, workspace and refs",
		UsageText: "git airlock clear [--discard-pending]",
		Description: "Landed commits and their notes stay. clear refuses (exit status 3) if commits or uncommitted changes of the agent would\n" +
			"be lost, or if the evidence about landed commits cannot be written.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: session.DiscardFlag, Usage: "discard pending commits, uncommitted changes of the agent, and evidence that cannot be written"}},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			return s.Clear(c.Context, c.Bool(session.DiscardFlag))
		}),
	}, cmdline.Takes{})
}
