package review

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/promote/review"
)

func fixCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "fix", Usage: "ask the agent to amend a pending commit",
		UsageText: "git airlock fix -m TEXT REV",
		Description: "REV is as for approve. Records the reason, which the agent will read in git log, and lands nothing. The commit stays pending, and what does not\n" +
			"apply without it is blocked. Once the agent has amended it, the new commit is shown as changed.",
		Flags:  []cli.Flag{messageFlag("; required")},
		Action: onCommits(reasoned(review.Fix)),
	}, cmdline.Takes{Least: 1, Most: 1})
}
