// Package prepare has the commands that need no airlock, or check one: the recipe, its images, this machine, secrets.
package prepare

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{initCommand(), doctorCommand(), agentsCommand(), selftestCommand(), imageCommand(), scanCommand()}
}
