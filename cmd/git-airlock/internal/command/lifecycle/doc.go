// Package lifecycle has the commands that start, use and end an airlock.
package lifecycle

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{startCommand(), visitCommand(), runCommand(), stopCommand(), clearCommand(), daemonCommand()}
}
