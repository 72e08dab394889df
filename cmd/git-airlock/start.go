package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

func startCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "start", Usage: "take a snapshot of the branch, start the prison and the daemon",
		UsageText: "git airlock start [options] [-- COMMAND...]",
		Description: "If the airlock is running, start repairs what has died. If it is stopped, start resumes the same workspace: network and\n" +
			"limits come from the current options and settings; the backend, --engine, --no-auto-land, --no-recipe and \"git -c\" keep the\n" +
			"values of the first start, unless you pass those three options again; image, runtime, tools, rootfs and variables are\n" +
			"kept unless you pass new ones. An image built from the recipe is rebuilt when the recipe changes.\n\n" +
			"start builds an image with what the committed " + recipe.FileName + " asks for, or checks that this machine has it,\n" +
			"and refuses otherwise. The startup commands run once, and again when they have changed.\n" +
			"With a command, start runs it detached in the prison, with a terminal of its own, one command at a time.",
		Flags: startFlags(),
		Action: inRepository(func(c *cli.Context, s *session.Session) error {
			request, err := requestOf(c, s, inside) // options and settings
			if err != nil {
				return err
			}
			return s.Start(c.Context, request) // snapshot, prison, daemon
		}),
	}, inside, true)
}
