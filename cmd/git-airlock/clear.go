package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
)

func clearCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "clear", Usage: "land what can land, then remove prison, workspace and refs",
		UsageText:   "git airlock clear [--discard-pending]",
		Description: "Landed commits and their notes stay. Refuses (exit status 3) while anything would be lost.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: session.DiscardFlag, Usage: "lose what has not landed and what is not committed"}},
		Action: inRepository(func(c *cli.Context, s *session.Session) error {
			return s.Clear(c.Context, c.Bool(session.DiscardFlag))
		}),
	}, inside, false)
}
