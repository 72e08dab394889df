package review

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/judgement"
	"github.com/git-airlock/git-airlock/promote/review"
)

func fixCommand() *cli.Command {
	return edge.Command(&cli.Command{
		Name: "fix", Usage: "ask the agent to amend a pending commit",
		UsageText: "git airlock fix -m TEXT REV",
		Description: "Records the reason, which the agent will read in git log, and lands nothing. The commit stays pending, and what does not\n" +
			"apply without it is blocked. Once the agent has amended it, the new commit is shown as changed.",
		Flags: []cli.Flag{messageFlag("; required")},
		Action: onCommits(func(c *cli.Context) (judgement.Judgement, error) {
			if c.String("message") == "" {
				return judgement.Judgement{}, ui.Usagef("fix: the reason is missing: -m TEXT")
			}
			return judgement.Judgement{Word: review.Fix, Reason: c.String("message"), Names: edge.Words(c)}, nil
		}),
	}, edge.Takes{Least: 1, Most: 1})
}
