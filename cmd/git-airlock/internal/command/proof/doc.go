// Package proof has the commands with which others verify where commits come from.
package proof

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{verifyCommand(), shareCommand(), fetchCommand(), ciCommand()}
}
