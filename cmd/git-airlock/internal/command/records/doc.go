// Package records has the commands for the records of an airlock: checkpoints, events, runs and programs.
package records

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{checkpointCommand(), eventsCommand(), runsCommand(), inspectCommand(), execsCommand(), reportCommand(), compareCommand(), replayCommand()}
}
