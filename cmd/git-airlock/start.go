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
		Description: "Again on a running airlock: heals what has died. On a stopped one: resumes the same workspace. Network and limits are\n" +
			"then what options and settings say now. The backend stays, and what --engine, --no-auto-land, --no-recipe and \"git -c\" said;\n" +
			"image and runtime stay unless an option names others, variables, tools and rootfs unless an option or a setting does.\n" +
			"An image that was built of the recipe follows the recipe.\n\n" +
			"What the committed " + recipe.FileName + " asks for is made, asked for on this machine, or refused; its startup\n" +
			"commands are run once, and again when they have changed.\n" +
			"With a command, runs it detached in the prison, with a terminal of its own, one at a time.",
		Flags: startFlags(),
		Action: inRepository(func(c *cli.Context, s *session.Session) error {
			request, err := requestOf(c, s, inside)
			if err != nil {
				return err
			}
			return s.Start(c.Context, request)
		}),
	}, inside, true)
}
