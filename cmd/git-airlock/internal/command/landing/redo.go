package landing

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/undo"
)

func redoCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "redo", Usage: "make the landing again that was undone last",
		UsageText:   "git airlock redo",
		Description: "Exit status 3 if something has landed since, or if your files are in the way.",
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			engine := s.Engine(r)
			engine.Settings = s.Settings
			defer engine.Close()
			o, err := undo.Redo(c.Context, engine)
			return moved(s, r, err, "redone", o, o.After)
		}),
	}, cmdline.Takes{})
}
