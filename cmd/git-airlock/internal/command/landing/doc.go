// Package landing has the commands that show commits and land them.
package landing

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{statusCommand(), promoteCommand(), listCommand(), policyCommand(), logCommand(), undoCommand(), redoCommand(), syncCommand(), checkCommand()}
}
