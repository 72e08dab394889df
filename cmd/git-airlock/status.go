package main

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/policy"
)

func statusCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "status", Usage: "show what runs, what landed, what is held and why",
		UsageText: "git airlock status [--json | --watch]",
		Description: "With --watch, shows it again whenever it changes, until ^C: on a terminal always in the same place,\n" +
			"elsewhere one after the other, with an empty line in between.",
		Flags: []cli.Flag{jsonFlag, &cli.BoolFlag{Name: "watch", Usage: "go on showing what changes"}},
		Action: inRepository(func(c *cli.Context, s *session.Session) error {
			asJSON := c.Bool(jsonFlag.Name)
			switch {
			case c.Bool("watch") && asJSON:
				return ui.Usagef("status: --watch and --json exclude each other")
			case c.Bool("watch"):
				return watch(c)
			}
			r, err := s.Here(c.Context)
			if errors.Is(err, session.ErrNoAirlock) && asJSON {
				if err := ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "state": "none"}); err != nil {
					return err
				}
				return told{err}
			}
			if err != nil {
				return err
			}
			status, err := s.Status(c.Context, r)
			if err != nil {
				return err
			}
			d := documentOf(s.Config, status)
			if asJSON {
				return ui.PrintJSON(c.App.Writer, d)
			}
			if err := show(c.Context, s, "status", false, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, time.Now()) }); err != nil {
				return err
			}
			if ui.CanAsk() { // what reads our words for a program takes advice for trouble
				s.HintAtNotes(r, d.Landed)
			}
			return nil
		}),
	}, inside, false)
}

// documentOf makes the document of a status.
func documentOf(config gitops.Config, s session.Status) ui.Document {
	r, p := s.Record, s.Promotion
	d := ui.Document{
		Version: ui.DocumentVersion, Session: r.Session, Branch: r.BranchName(), State: s.State, Backend: r.Backend,
		BackendReason: r.Reason, ID: r.ID, Workspace: r.Workspace, UID: r.Phantom.UID, Base: r.Base,
		Promoted: p.Promoted, InnerTip: p.InnerTip, Daemon: ui.Daemon{Running: s.Daemon, PID: s.DaemonPID},
		Holds: []ui.Hold{}, Pending: p.Pending, Uncommitted: p.Uncommitted, Waiting: []ui.Waiting{},
		Landed: p.Landed, Flagged: []ui.Flagged{}, LastLandedAt: p.LastLandedAt, Failure: p.Failure,
		Isolation: ui.Isolation{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Weaker: []string{}, Limits: ui.Limits{
			Memory: policy.SizeText(r.Isolation.Limits.Memory), CPUs: strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), PIDs: r.Isolation.Limits.PIDs}},
		Began: identity.SessionBegan(r.Session), LeftOut: readHostSide().LeftOut, Filters: filterLines(config), Lost: s.Lost,
	}
	for _, w := range r.Isolation.Weaker {
		d.Isolation.Weaker = append(d.Isolation.Weaker, w.Text)
	}
	if c := s.Command; c != nil {
		d.Command = &ui.Command{Argv: c.Argv, State: "running"}
		if c.Exited {
			d.Command.State, d.Command.Exit = "exited", &c.Status
		}
	}
	for _, h := range p.Holds {
		d.Holds = append(d.Holds, ui.Hold{Reason: string(h.Reason), Paths: h.Paths, Message: h.Message, Next: h.Next, Since: h.Since})
	}
	if len(d.Holds) > 0 {
		d.Hold = &d.Holds[0]
	}
	for _, w := range p.Waiting {
		d.Waiting = append(d.Waiting, ui.Waiting{Ref: w.Ref, Commits: w.Commits, Next: session.MergeCommand(w)})
	}
	for _, f := range p.Flagged {
		d.Flagged = append(d.Flagged, ui.Flagged(f))
	}
	return d
}
