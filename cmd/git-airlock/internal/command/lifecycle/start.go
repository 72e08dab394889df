package lifecycle

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

func startCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "start", Usage: "take a snapshot of the branch, start the prison and the daemon",
		UsageText: "git airlock start [options] [-- COMMAND...]\ngit airlock start AGENT [options] [-- ARGUMENTS...]",
		Description: "If the airlock is running, start repairs what has died. If it is stopped, start resumes the same workspace. The\n" +
			"backend is that of the first start. The options are kept until you pass new ones, but for --selftest and --allow-secrets. So\n" +
			"are the settings and the identity from \"git -c\", and what an agent needs of the network. An empty value of --allow, --deny or\n" +
			"--env drops those of earlier starts. What no option has named comes from the current settings. Values of variables are not\n" +
			"kept: start reads them again from your environment or .env file, and refuses if one is missing. An image built from the recipe\n" +
			"is rebuilt when the recipe changes.\n\n" +
			"start builds an image with the tools that the committed " + recipe.FileName + " asks for, or checks that this machine\n" +
			"has them, and refuses otherwise. The recipe's startup commands run at the first start, and again when they have changed.\n\n" +
			"With a COMMAND, start launches it in the prison and returns at once. The command has a terminal of its own, see\n" +
			"git-airlock-visit(1). An airlock runs one launched command at a time. When the command has ended, or stop has ended it, it\n" +
			"does not run again by itself: status shows how it ended, and what to type. git airlock events --follow shows the end at once.\n\n" +
			"With an AGENT, such as claude, start launches that agent: with its program from this machine or the image, the hosts that it\n" +
			"needs, and a home in which it asks no questions. git-airlock-agents(1) lists the agents.",
		Flags: request.Flags(),
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			agent, command, err := asked(c, s) // by name, or as a command
			if err != nil {
				return err
			}
			wanted, err := request.Of(c, s, command, agent) // options and settings
			if err != nil {
				return err
			}
			if err := s.Start(c.Context, wanted); err != nil || agent != nil || len(command) > 0 || s.Dry { // snapshot, prison, daemon
				return misplaced(c, s, command, retype(c, err))
			}
			return sayEnded(c.Context, s)
		}),
	}, cmdline.Takes{Most: 1, Inside: true})
}

// sayEnded reports that the launched command has ended. It does not run again by itself, because an agent would do its task twice.
func sayEnded(ctx context.Context, s *session.Session) error {
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	l, err := s.Prisons().Launched(ctx, r)
	again := cmdline.Again(s, r)
	if err != nil || l == nil || !l.Exited || again == "" {
		return err
	}
	s.Report.Say("the launched command has ended, and does not run again by itself: %s", gitops.Text(strings.Join(l.Argv, " ")))
	s.Report.Hint(again)
	return nil
}
