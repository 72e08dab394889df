package lifecycle

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func stopCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "stop", Usage: "land pending commits, stop the daemon and the prison, keep the workspace",
		UsageText:   "git airlock stop",
		Description: "\"git airlock start\" resumes the same workspace.",
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			err := s.Stop(c.Context, r)
			if !s.Dry {
				s.Recorder.Ended(context.WithoutCancel(c.Context), r)
			}
			if refused, ok := errors.AsType[*environment.Refusal](err); ok {
				// The airlock is stopped, so this is not an error. The held commits wait until the next start.
				s.Report.Say("%s", refused.Text)
				return nil
			}
			return err
		}),
	}, cmdline.Takes{})
}
