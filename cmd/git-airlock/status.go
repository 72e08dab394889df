package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/policy"
)

func statusCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "status", Usage: "show what runs, what landed, what is held and why",
		UsageText: "git airlock status [--json | --watch]",
		Description: "With --watch, shows it again whenever it changes, until ^C: on a terminal always in the same place,\n" +
			"elsewhere one after the other, with an empty line in between.",
		Flags: []cli.Flag{jsonFlag, &cli.BoolFlag{Name: "watch", Usage: "go on showing what changes"}},
		Action: inRepository(func(c *cli.Context, a *app) error {
			asJSON := c.Bool(jsonFlag.Name)
			switch {
			case c.Bool("watch") && asJSON:
				return ui.Usagef("status: --watch and --json exclude each other")
			case c.Bool("watch"):
				return a.watch(c.Context)
			}
			r, err := a.here(c.Context)
			if errors.Is(err, errNoAirlock) && asJSON {
				if err := ui.PrintJSON(a.out, map[string]any{"version": ui.DocumentVersion, "state": "none"}); err != nil {
					return err
				}
				return childStatus(4)
			}
			if err != nil {
				return err
			}
			d, err := a.document(c.Context, r)
			if err != nil {
				return err
			}
			if asJSON {
				return ui.PrintJSON(a.out, d)
			}
			if err := a.show(c.Context, "status", false, func(out io.Writer, p ui.Paint) error { return d.Print(out, p, time.Now()) }); err != nil {
				return err
			}
			if ui.CanAsk() { // what reads our words for a program takes advice for trouble
				a.showNotes(r, d.Landed)
			}
			return nil
		}),
	}, inside, false)
}

// document looks at an airlock of this worktree, and heals its daemon. What another command has changed meanwhile is
// looked at again.
func (a *app) document(ctx context.Context, r airlock.Record) (ui.Document, error) {
	for tries := 3; ; tries-- {
		there := *a
		var said *bytes.Buffer
		there.message, said = ui.Buffered(a.message)
		d, err := there.documentNow(ctx, r)
		if d.State == "broken" {
			a.letFinish(ctx) // it may be on its way down
		}
		now, gone := a.current(r)
		if gone != nil {
			return d, gone
		}
		if now.Phase == r.Phase || tries == 0 {
			_, writeErr := said.WriteTo(a.message)
			return d, errors.Join(err, writeErr)
		}
		r = now
	}
}

// letFinish waits a moment for another start, stop or clear.
func (a *app) letFinish(ctx context.Context) {
	const moment = 2 * time.Second
	waiting, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	if unlock, err := a.store.Lock(waiting); err == nil {
		unlock()
	}
}

func (a *app) documentNow(ctx context.Context, r airlock.Record) (ui.Document, error) {
	d := ui.Document{
		Version: ui.DocumentVersion, Session: r.Session, Branch: r.BranchName(), State: string(r.Phase), Backend: r.Backend,
		BackendReason: r.Reason, ID: r.ID, Workspace: r.Workspace, UID: r.Phantom.UID, Base: r.Base,
		Began: identity.SessionBegan(r.Session), LeftOut: readHostSide().LeftOut, Filters: filterLines(a.config),
		Holds: []ui.Hold{}, Waiting: []ui.Waiting{}, Flagged: []ui.Flagged{},
		Isolation: ui.Isolation{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Weaker: []string{},
			Limits: ui.Limits{Memory: policy.SizeText(r.Isolation.Limits.Memory), CPUs: strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), PIDs: r.Isolation.Limits.PIDs}},
	}
	for _, w := range r.Isolation.Weaker {
		d.Isolation.Weaker = append(d.Isolation.Weaker, w.Text)
	}
	if err := a.heal(ctx, r); err != nil {
		return d, err
	}
	if a.store.WorkspaceGone(r) {
		d.Lost = r.Workspace
	} else if err := a.warnTracked(ctx, r); err != nil {
		return d, err
	}
	pid, err := daemon.PID(a.store, r.ID)
	far := errors.Is(err, daemon.ErrElsewhere)
	if err != nil && !far {
		return d, err
	}
	d.Daemon = ui.Daemon{Running: pid != 0 || far, PID: pid}
	if err := a.prisonState(ctx, r, &d); err != nil {
		return d, err
	}
	if d.Lost != "" || a.store.Orphan(r) {
		d.State = "broken"
	}
	return d, a.promotion(ctx, r, &d)
}

// prisonState fills in what is known of the prison and its command. One whose engine does not answer is broken, for
// all one can see; that is said, and keeps nothing else from being shown.
func (a *app) prisonState(ctx context.Context, r airlock.Record, d *ui.Document) error {
	runs, err := a.prisonRuns(ctx, r)
	switch {
	case errors.Is(err, prison.ErrFrozen): // it runs, if nothing in it does
	case r.Phase == airlock.Running && !runs:
		d.State = "broken"
	case runs: // of a stopped one, if a start was killed before it was written down
		d.State = string(airlock.Running)
	}
	if err == nil {
		d.Command, err = a.launched(ctx, r)
	}
	var unavailable *prison.Unavailable
	if errors.As(err, &unavailable) || errors.Is(err, prison.ErrFrozen) {
		ui.Say(a.message, "look at the prison: %s", gitops.Escape(err.Error()))
		ui.Hint(a.message, hints(err)...)
		return nil
	}
	return err
}

// promotion fills in what is known of landing. That the workspace cannot be looked into is said, and
// keeps nothing else from being shown.
func (a *app) promotion(ctx context.Context, r airlock.Record, d *ui.Document) error {
	engine := a.engine(r)
	defer engine.Close()
	s, err := engine.State(ctx)
	if err != nil && s.Promoted == "" {
		return err
	}
	if err != nil {
		ui.Say(a.message, "look into the workspace: %s", gitops.Escape(err.Error()))
	}
	d.Promoted, d.InnerTip, d.Pending = s.Promoted, s.InnerTip, s.Pending
	for _, h := range s.Holds {
		d.Holds = append(d.Holds, ui.Hold{Reason: string(h.Reason), Paths: h.Paths, Message: h.Message, Next: h.Next, Since: h.Since})
	}
	for _, w := range s.Waiting {
		d.Waiting = append(d.Waiting, ui.Waiting{Ref: w.Ref, Commits: w.Commits, Next: bringHome(w)})
	}
	for _, f := range s.Flagged {
		d.Flagged = append(d.Flagged, ui.Flagged(f))
	}
	d.Uncommitted, d.Landed, d.LastLandedAt, d.Failure = s.Uncommitted, s.Landed, s.LastLandedAt, s.Failure
	if len(d.Holds) > 0 {
		d.Hold = &d.Holds[0]
	}
	return nil
}

// warnTracked says that the user's git was made to add the workspace: from then on it looks into a repository that an
// agent writes.
func (a *app) warnTracked(ctx context.Context, r airlock.Record) error {
	if !r.Inside || r.Worktree != a.repo.WorktreeID() {
		return nil
	}
	tracked, err := a.repo.Tracks(ctx, r.Workspace)
	if tracked {
		ui.Say(a.message, "the workspace %s was added to the index: git status now runs git inside it", r.Workspace)
		ui.Hint(a.message, "git rm -r -f -q --cached "+r.Workspace)
	}
	return err
}

// launched returns the state of the launched command, nil if there was none.
func (a *app) launched(ctx context.Context, r airlock.Record) (*ui.Command, error) {
	spec, err := a.spec(r)
	if err != nil {
		return nil, err
	}
	l, err := a.backend(r).Launched(ctx, spec)
	if err != nil || l == nil {
		return nil, err
	}
	state := &ui.Command{Argv: l.Argv, State: "running"}
	if l.Exited {
		state.State, state.Exit = "exited", &l.Status
	}
	return state, nil
}
