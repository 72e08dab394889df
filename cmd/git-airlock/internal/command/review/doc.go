// Package review has the commands with which a user reviews pending commits.
package review

import "github.com/urfave/cli/v2"

// Commands returns the commands of this package, in the order of the help.
func Commands() []*cli.Command {
	return []*cli.Command{reviewCommand(), diffCommand(), approveCommand(), rejectCommand(), fixCommand(), hooksCommand(), prCommand()}
}

// mostCommits bounds the commits that one command names.
const mostCommits = 10_000
