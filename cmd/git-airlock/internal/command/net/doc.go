// Package net has the command net, which shows and changes what a prison reaches.
package net

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{netCommand()}
}
