package landing

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func listCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "list", Usage: "list the airlocks of all worktrees of this repository",
		UsageText:   "git airlock list [--json]",
		Description: "git-airlock(1) explains the fields of --json.",
		Flags:       []cli.Flag{cmdline.JSONFlag},
		Action: func(c *cli.Context) error {
			err := cmdline.InRepository(list)(c)
			if !errors.Is(err, gitops.ErrBare) {
				return err
			}
			if s := session.PeekBeside(c.Context, session.Options{Report: ui.Reporter{To: c.App.ErrWriter}, Now: ui.Now}); s != nil {
				return list(c, s)
			}
			return err
		},
	}, cmdline.Takes{})
}

func list(c *cli.Context, s *session.Session) error {
	all, err := s.List(c.Context)
	if err != nil {
		return err
	}
	var documents []ui.Document
	for _, status := range all {
		d, err := documentOf(c.Context, s, status)
		if err != nil {
			return err
		}
		documents = append(documents, d)
	}
	damaged, err := s.Store.Damaged()
	if err != nil {
		return err
	}
	for _, d := range damaged {
		documents = append(documents, damagedDocument(d))
	}
	s.TellRemains(c.Context)
	return cmdline.Print(c, s, true, map[string]any{"version": ui.DocumentVersion, "airlocks": documents}, cmdline.Lines(documents, listLine))
}

// damagedDocument returns the document of an airlock whose record cannot be read.
func damagedDocument(d *airlock.DamagedError) ui.Document {
	r := d.Known
	return ui.Document{
		Version: ui.DocumentVersion, ID: d.ID, State: session.Broken, Failure: d.Error(), Session: r.Session, Branch: r.BranchName().Raw(),
		Workspace: r.Workspace,
	}
}

func listLine(p ui.Paint, d ui.Document) string {
	if d.Failure != "" && d.Base == "" {
		return fmt.Sprintf("%s  %-8s %s", p.Yellow(d.ID), d.State, p.Red("its state cannot be read"))
	}
	hold := ""
	if d.Hold != nil {
		hold = ", " + p.Red("held: "+d.Hold.Reason)
	}
	return fmt.Sprintf("%s  %-8s %s: %d landed, %d pending%s", p.Yellow(d.ID), d.State, p.Bold(gitops.Text(d.Branch).String()), d.Landed, d.Pending, hold)
}
