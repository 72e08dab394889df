package landing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/policy"
)

func statusCommand() *cli.Command {
	return edge.Command(&cli.Command{
		Name: "status", Usage: "show the airlock's state, landed commits, and why others are held",
		UsageText: "git airlock status [--json | --watch]",
		Description: "With --watch, prints the status again whenever it changes, until ^C. On a terminal the new status replaces the\n" +
			"previous one. Elsewhere it follows the previous one after an empty line.",
		Flags: []cli.Flag{edge.JSONFlag, &cli.BoolFlag{Name: "watch", Usage: "print the status again whenever it changes"}},
		Action: edge.InRepository(func(c *cli.Context, s *session.Session) error {
			asJSON := c.Bool(edge.JSONFlag.Name)
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
				return edge.Shown(err)
			}
			if err != nil {
				return err
			}
			status, err := s.Status(c.Context, r)
			if err != nil {
				return err
			}
			d := documentOf(s, status)
			if asJSON {
				return ui.PrintJSON(c.App.Writer, d)
			}
			if err := edge.Show(c.Context, s, "status", false, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, ui.Now()) }); err != nil {
				return err
			}
			if ui.CanAsk() { // a program that reads standard error may take a hint for an error
				s.HintAtNotes(r, d.Landed)
			}
			return nil
		}),
	}, edge.Takes{})
}

// documentOf converts a status to a document.
func documentOf(of *session.Session, s session.Status) ui.Document {
	r, p := s.Record, s.Promotion
	led, _ := hostenv.Taken()
	d := ui.Document{
		Version: ui.DocumentVersion, Session: r.Session, Branch: r.BranchName().Raw(), State: s.State, Backend: r.Backend,
		BackendReason: r.Reason, ID: r.ID, Workspace: r.Workspace, UID: r.Phantom.UID, Base: r.Base,
		Promoted: p.Promoted, InnerTip: p.InnerTip, Daemon: ui.Daemon{Running: s.Daemon, PID: s.DaemonPID},
		Holds: edge.Holds(p.Holds), Pending: p.Pending, Uncommitted: p.Uncommitted, Waiting: []ui.Waiting{},
		Landed: p.Landed, Flagged: []ui.Flagged{}, LastLandedAt: p.LastLandedAt, Failure: p.Failure,
		Isolation: ui.Isolation{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Weaker: []string{}, Limits: ui.Limits{
			Memory: policy.SizeText(r.Isolation.Limits.Memory), CPUs: strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), PIDs: r.Isolation.Limits.PIDs}},
		Named: p.Named, Newest: p.Newest, Began: identity.SessionBegan(r.Session), LeftOut: edge.LeftOut(led), Filters: filterLines(of.Config), Lost: s.Lost,
	}
	for _, w := range r.Isolation.Weaker {
		d.Isolation.Weaker = append(d.Isolation.Weaker, w.Text)
	}
	d.Refusals = edge.RefusedHosts(s.Refusals.Rules, s.Refusals.Records)
	if c := s.Command; c != nil {
		d.Command = &ui.Command{Argv: c.Argv, State: "running"}
		if c.Exited {
			d.Command.State, d.Command.Exit = "exited", &c.Status
		}
	}
	if len(d.Holds) > 0 {
		d.Hold = &d.Holds[0]
	}
	for _, w := range p.OtherRefs {
		d.Waiting = append(d.Waiting, ui.Waiting{Ref: w.Ref, Commits: w.Commits, Next: session.MergeCommand(w)})
	}
	for _, f := range p.Flagged {
		d.Flagged = append(d.Flagged, ui.Flagged(f))
	}
	return d
}

const (
	// watchPoll is the interval after which the status is read without a sign of a change. The agent's uncommitted changes give no
	// sign.
	watchPoll = 2 * time.Second
	// watchPause is the delay after a change, so that a burst of changes is shown at once.
	watchPause = 200 * time.Millisecond
)

// watch shows the status again whenever it changes, until it is interrupted, its reader has gone, or the airlock is cleared.
func watch(c *cli.Context) error {
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	go func() {
		if ui.UntilUnread(os.Stdout) { // without changes there is no write that would fail
			cancel(edge.ErrUnread)
		}
	}()
	c.Context = ctx
	said := &bytes.Buffer{}
	s, err := edge.OpenAs(c, ui.Reporter{To: said})
	if err != nil {
		return err
	}
	view := func() *ui.View { return ui.NewView(c.App.Writer, c.App.ErrWriter, edge.Painted(s)) }
	err = watchWhile(ctx, s, said, view)
	if err == nil && errors.Is(context.Cause(ctx), edge.ErrUnread) {
		return edge.Shown(edge.ErrUnread)
	}
	return err
}

// watchWhile watches until ctx ends or the airlock is cleared.
func watchWhile(ctx context.Context, s *session.Session, said *bytes.Buffer, newView func() *ui.View) error {
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	changes := daemon.Watch(ctx, s.Repo, s.Store, r)
	view := newView()
	defer view.Close()
	for ctx.Err() == nil {
		if err := refresh(ctx, s, said, view); err != nil {
			if ctx.Err() != nil {
				return nil // the error is only the interruption
			}
			return err
		}
		poll := time.After(watchPoll)
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case <-poll:
				waits = false
			case <-changes:
				time.Sleep(watchPause)
				waits = false
			case <-view.Tick:
				view.Draw()
			}
		}
	}
	return nil
}

// refresh reads the status and shows it once, with its messages.
func refresh(ctx context.Context, s *session.Session, said *bytes.Buffer, v *ui.View) error {
	said.Reset()
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	status, err := s.Status(ctx, r)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err // an interrupted status has gaps, and says so
	}
	return v.Show(documentOf(s, status), said.String())
}

// filterLines lists the user's filters, and whether they can use the network during a landing.
func filterLines(config gitops.Config) []string {
	var lines []string
	for _, name := range land.WithoutNetwork(config) {
		lines = append(lines, gitops.Text(name).String()+": no network during a landing")
	}
	for _, name := range land.Reaching(config) {
		lines = append(lines, gitops.Text(name).String()+": reaches the network during a landing")
	}
	return lines
}
