// Package records has the commands for the records of an airlock: checkpoints, events, runs and programs.
package records

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
)

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{checkpointCommand(), eventsCommand(), runsCommand(), inspectCommand(), execsCommand(), reportCommand(), compareCommand(), replayCommand()}
}

// inAny opens any repository for a command on the records of runs, which also a bare repository can have.
func inAny(act func(*cli.Context, *session.Session) error) cli.ActionFunc {
	return cmdline.InAnyRepository(func(c *cli.Context, s *session.Session, _ bool) error { return act(c, s) })
}
