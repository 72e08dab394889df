package landing

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/pushcheck"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

func statusCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "status", Usage: "show the airlock's state, landed commits, and why others are held",
		UsageText: "git airlock status [--json | --watch]",
		Description: "With --watch, prints the status again whenever it changes, until ^C. On a terminal the new status replaces the\n" +
			"previous one. Elsewhere it follows the previous one after an empty line.",
		Flags: []cli.Flag{cmdline.JSONFlag, &cli.BoolFlag{Name: "watch", Usage: "print the status again whenever it changes"}},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			asJSON := c.Bool(cmdline.JSONFlag.Name)
			switch {
			case c.Bool("watch") && asJSON:
				return ui.Usagef("status: --watch and --json exclude each other")
			case c.Bool("watch"):
				return cmdline.Watch(c, readStatus)
			}
			return printStatus(c, s, asJSON)
		}),
	}, cmdline.Takes{})
}

// printStatus prints the status once.
func printStatus(c *cli.Context, s *session.Session, asJSON bool) error {
	r, err := s.Here(c.Context)
	if errors.Is(err, session.ErrNoAirlock) {
		s.TellRemains(c.Context)
	}
	if errors.Is(err, session.ErrNoAirlock) && asJSON {
		if err := ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "state": "none"}); err != nil {
			return err
		}
		return cmdline.Shown(err)
	}
	if err != nil {
		return err
	}
	status, err := s.Status(c.Context, r)
	if err != nil {
		return err
	}
	d, err := documentOf(c.Context, s, status)
	if err != nil {
		return err
	}
	if asJSON {
		return ui.PrintJSON(c.App.Writer, d)
	}
	if err := cmdline.Show(c, s, false, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, ui.Now()) }); err != nil {
		return err
	}
	if ui.CanAsk() { // a program that reads standard error may take a hint for an error
		s.HintAtNotes(r.ID, d.Landed)
	}
	return nil
}

// workspaceOf returns the path of the workspace: below the top of the work tree, or absolute if it is in the host state.
func workspaceOf(s *session.Session, r airlock.Record) string {
	if r.Inside {
		return r.Workspace
	}
	return gitops.Text(s.Store.Workspace(r)).String()
}

func documentOf(ctx context.Context, of *session.Session, s session.Status) (d ui.Document, err error) {
	r, p := s.Record, s.Promotion
	led, _ := hostenv.Taken()
	working := s.Command != nil && !s.Command.Exited || cmdline.Runs(of, r).AtWork()
	d = ui.Document{
		Version: ui.DocumentVersion, Session: r.Session, Branch: r.BranchName().Raw(), State: s.State, Backend: r.Backend,
		BackendReason: r.Reason, Image: r.Image, ID: r.ID, Workspace: workspaceOf(of, r), UID: r.Phantom.UID, Base: r.Base,
		Promoted: p.Promoted, InnerTip: p.InnerTip, Daemon: ui.Daemon{Running: s.Daemon, PID: s.DaemonPID},
		Holds: cmdline.Holds(p.Holds, s.State == "running"), Pending: p.Pending, Uncommitted: p.Uncommitted, Waiting: cmdline.Waiting(p, working),
		Landed: p.Landed, LastLandedAt: p.LastLandedAt, LandingSince: s.Landing, Failure: p.Failure, Mend: s.Mend,
		Isolation: ui.Isolation{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Lockdown: s.Refusals.Rules.Lockdown, Limits: ui.Limits{
			Memory: policy.SizeText(r.Isolation.Limits.Memory), CPUs: strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), PIDs: r.Isolation.Limits.PIDs}},
		Named: p.Named, Newest: p.Newest, Began: identity.SessionBegan(r.Session), LeftOut: cmdline.LeftOut(led), Filters: filterLines(of.Config), Lost: s.Lost, Syncing: s.Syncing, SyncWaits: s.SyncWaits,
		Refusals: cmdline.RefusedHosts(s.Refusals), RefusedCredentials: cmdline.RefusedCredentials(s.Refusals), MoreRefusals: s.Refusals.More,
		RefusedCertificate: cmdline.RefusedCertificate(s.Refusals), FailingProxy: cmdline.FailingProxy(s.Refusals.Rules.Proxy, s.Refusals.Proxy),
		Works: hold.Works(p.Places),
	}
	for _, w := range r.Isolation.Weaker {
		d.Isolation.Weaker = append(d.Isolation.Weaker, w.Text)
	}
	for _, sentence := range s.Refusals.Rules.DeniedByName(ui.Now()) {
		d.Isolation.Weaker = append(d.Isolation.Weaker, gitops.Text(sentence).String())
	}
	if c := s.Command; c != nil {
		d.Command = &ui.Command{Argv: c.Argv, State: "running"}
		if c.Exited {
			d.Command.State, d.Command.Exit, d.Command.Again = "exited", &c.Status, cmdline.Again(of, r)
		}
	}
	if len(d.Holds) > 0 {
		d.Hold = &d.Holds[0]
	}
	for _, x := range hold.Losing(p.Places) {
		d.Uncommitted += x.Changes
		d.Places = append(d.Places, ui.Place{Path: gitops.Text(x.Path).String(), Repository: x.Repository, Uncommitted: x.Changes, Commits: x.Commits, Unread: x.Unread, Hidden: string(x.Hidden), Next: session.SeePlace(x)})
	}
	for _, f := range p.Flagged {
		d.Flagged = append(d.Flagged, ui.Flagged(f))
	}
	for _, x := range p.Rebased {
		d.Rebased = append(d.Rebased, ui.Rebased(x))
	}
	startup, err := of.Store.Startup(r.ID)
	if err == nil {
		d.ImageID, err = of.Prisons().MadeFrom(r)
	}
	if err != nil {
		return d, err
	}
	d.SetupFailure = environment.FailedCommand(startup)
	if d.State == session.Broken {
		d.Ended = events.Overfilled(of.Store.Dir(r.ID))
	}
	d.Review, err = reviewOf(ctx, of, r)
	return d, err
}

// reviewOf counts the commits to review. If they cannot be read, it prints a message, and the rest of the status is still shown.
func reviewOf(ctx context.Context, s *session.Session, r airlock.Record) (ui.Review, error) {
	mode, err := promote.ReadReview(s.Config.With(r.Settings))
	if err != nil {
		return ui.Review{}, err
	}
	engine := s.Engine(r)
	defer engine.Close()
	n, err := verdict.Summary(ctx, engine, mode)
	if mode == review.Push && err == nil {
		err = addLanded(ctx, s, r, &n)
	}
	if err != nil && ctx.Err() == nil {
		s.Report.Say("count the commits to review: %s", err)
	}
	return ui.Review{Mode: string(mode), Waiting: n.Waiting, Approved: n.Approved, Asked: n.Asked, Rejected: n.Rejected, Undone: n.Undone, Blocked: n.Blocked}, nil
}

// addLanded adds the landed commits that wait for a review in the worktree of an airlock.
func addLanded(ctx context.Context, s *session.Session, r airlock.Record, to *review.Counts) error {
	made, err := pushcheck.MadeIn(ctx, s, r)
	for _, c := range made {
		if !c.Passes() {
			to.Add(c.State())
		}
	}
	return err
}

// readStatus reads the status once, with its messages.
func readStatus(ctx context.Context, s *session.Session) (ui.Printed, error) {
	r, err := s.Here(ctx)
	if err != nil {
		return nil, err
	}
	status, err := s.Status(ctx, r)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err // an interrupted status is not complete, and has messages about the rest
	}
	return documentOf(ctx, s, status)
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
