package review

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

func rejectCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "reject", Usage: "leave pending commits out",
		UsageText: "git airlock reject [--with-dependents] -m TEXT REV...",
		Description: "REV is as for approve. Records the reason, which the agent will read in git log, and lands nothing. The commits are kept under\n" +
			"refs/airlock/<id>/rejected/ until clear, and approve takes one back. What does not apply without them is blocked.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "with-dependents", Usage: "also reject the commits that do not apply without them"}, messageFlag("; required")},
		Action: onCommits(reasoned(review.Reject)),
	}, cmdline.Takes{Least: 1, Most: mostCommits})
}

// reasoned returns the function that reads the request for a verdict which needs a reason.
func reasoned(word review.Word) func(*cli.Context) (verdict.Request, error) {
	return func(c *cli.Context) (verdict.Request, error) {
		if c.String("message") == "" {
			return verdict.Request{}, ui.Usagef("%s: the reason is missing: -m TEXT", word)
		}
		return verdict.Request{Word: word, Reason: c.String("message"), Names: cmdline.Words(c), Dependents: c.Bool("with-dependents")}, nil
	}
}
