package review

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/pushcheck"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/proposal"
)

func prCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "pr", Usage: "write a pull request for the branch",
		UsageText: "git airlock pr [--print | --create] [--base BRANCH]",
		Description: "Writes the title, an empty line, and the body in Markdown: a table of the agent's commits with their tree, gate, reviewers,\n" +
			"check (see airlock.check) and the hosts that the prison reached, from the notes. An agent's text is quoted so that no mention, link, image or HTML\n" +
			"in it has an effect. With --create, gh makes the pull request. Exit status 3 if it would have more than 250 commits.\n" +
			"Neither pushes anything: the hints name what the remote may lack, also the notes, which a plain git push leaves here.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "print", Usage: "print title and body, as without an option"},
			&cli.BoolFlag{Name: "create", Usage: "make the pull request with gh, for a branch that you have pushed"},
			&cli.StringFlag{Name: "base", Usage: "the `BRANCH` of the remote to merge into, in place of its default branch"},
		},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			if c.Bool("print") && c.Bool("create") {
				return ui.Usagef("pr: --print and --create exclude each other")
			}
			p, base, err := pushcheck.Propose(c.Context, s, c.String("base"))
			if err != nil {
				return err
			}
			many := &environment.Refusal{Text: fmt.Sprintf("%d commits: many services show no more than %d in a pull request", p.Commits(), proposal.Most),
				Next: []string{"git switch -c BRANCH COMMIT  # and one pull request for each part"}}
			switch {
			case c.Bool("create") && p.Commits() > proposal.Most:
				return many
			case c.Bool("create"):
				err = pushcheck.Create(c.Context, s, p, base, c.App.Writer, c.App.ErrWriter)
			default:
				_, err = fmt.Fprintf(c.App.Writer, "%s\n\n%s", p.Title(), p.Body())
			}
			if err != nil {
				return err
			}
			if p.Commits() > proposal.Most {
				return many
			}
			push, err := pushcheck.ToPush(c.Context, s, p)
			if err == nil && len(push) > 0 && !s.Dry {
				s.Report.Hint(push...)
			}
			return err
		}),
	}, cmdline.Takes{})
}
