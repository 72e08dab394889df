package review

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func diffCommand() *cli.Command {
	return edge.Command(&cli.Command{
		Name: "diff", Usage: "show the changes of a pending commit",
		UsageText: "git airlock diff [REV]",
		Description: "Without REV, shows the changes of all commits that wait, one after the other. No program of the repository or of\n" +
			"your configuration is run, and no attribute of the tree can hide a change.",
		Action: edge.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			d, err := documentOf(c.Context, s, r, edge.Words(c))
			if err != nil {
				return err
			}
			return edge.Show(c.Context, s, "diff", true, func(out io.Writer, p ui.Paint) error {
				for _, x := range d.Commits {
					if x.Commit == "" {
						continue
					}
					fmt.Fprintf(out, "%s %s\n", p.Yellow("commit "+string(x.Commit)), x.Subject)
					if err := s.Repo.ShowChange(c.Context, out, bool(p), x.Commit); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}, edge.Takes{Most: 1})
}
