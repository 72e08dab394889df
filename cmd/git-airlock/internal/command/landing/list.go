package landing

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
)

func listCommand() *cli.Command {
	return edge.Command(&cli.Command{
		Name: "list", Usage: "list the airlocks of all worktrees of this repository",
		UsageText:   "git airlock list [--json]",
		Description: "git-airlock(1) explains the fields of --json.",
		Flags:       []cli.Flag{edge.JSONFlag},
		Action: edge.InRepository(func(c *cli.Context, s *session.Session) error {
			all, err := s.List(c.Context)
			if err != nil {
				return err
			}
			documents := []ui.Document{}
			for _, status := range all {
				d, err := documentOf(c.Context, s, status)
				if err != nil {
					return err
				}
				documents = append(documents, d)
			}
			if c.Bool(edge.JSONFlag.Name) {
				return ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "airlocks": documents})
			}
			return edge.Show(c.Context, s, "list", true, func(out io.Writer, p ui.Paint) error { return printList(out, p, documents) })
		}),
	}, edge.Takes{})
}

func printList(out io.Writer, p ui.Paint, documents []ui.Document) error {
	for _, d := range documents {
		hold := ""
		if d.Hold != nil {
			hold = ", " + p.Red("held: "+d.Hold.Reason)
		}
		_, err := fmt.Fprintf(out, "%s  %-8s %s: %d landed, %d pending%s\n",
			p.Yellow(d.ID), d.State, p.Bold(gitops.Text(d.Branch).String()), d.Landed, d.Pending, hold)
		if err != nil {
			return err
		}
	}
	return nil
}
