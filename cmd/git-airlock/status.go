package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
)

func statusCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "status", Usage: "show what runs, what landed, what is held and why",
		UsageText: "git airlock status [--json | --watch]",
		Description: "With --watch, shows it again whenever it changes, until ^C: on a terminal always in the same place,\n" +
			"elsewhere one after the other, with an empty line in between.\n\n" + exitStatusHelp,
		Flags: []cli.Flag{jsonFlag, &cli.BoolFlag{Name: "watch", Usage: "go on showing what changes"}},
		Action: inRepository(func(c *cli.Context, a *app) error {
			asJSON := c.Bool(jsonFlag.Name)
			switch {
			case c.Bool("watch") && asJSON:
				return usagef("status: --watch and --json exclude each other")
			case c.Bool("watch"):
				return a.watch(c.Context)
			}
			r, err := a.here(c.Context)
			if errors.Is(err, errNoAirlock) && asJSON {
				if err := printJSON(a.out, map[string]any{"version": documentVersion, "state": "none"}); err != nil {
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
				return printJSON(a.out, d)
			}
			if err := a.show(c.Context, "status", false, func(out io.Writer, p paint) error { return d.print(out, p, time.Now()) }); err != nil {
				return err
			}
			if onTerminal() { // what reads our words for a program takes advice for trouble
				a.showNotes(r, d.Landed)
			}
			return nil
		}),
	}, inside, false)
}

const documentVersion = 1

// document is version 1 of what status --json prints.
type document struct {
	Version       int               `json:"version"`
	Session       string            `json:"session"`
	Branch        string            `json:"branch"`
	State         string            `json:"state"`
	Backend       string            `json:"backend"`
	BackendReason string            `json:"backend_reason"`
	ID            string            `json:"id"`
	Workspace     string            `json:"workspace"`
	UID           int               `json:"uid"`
	Base          gitops.OID        `json:"base"`
	Promoted      gitops.OID        `json:"promoted"`
	InnerTip      gitops.OID        `json:"inner_tip"`
	Daemon        daemonState       `json:"daemon"`
	Command       *commandState     `json:"command"`
	Hold          *promote.Hold     `json:"hold"`
	Holds         []promote.Hold    `json:"holds"`
	Pending       int               `json:"pending"`
	Uncommitted   int               `json:"uncommitted"`
	Waiting       []promote.Waiting `json:"waiting"`
	Landed        int               `json:"landed"`
	Flagged       []promote.Flagged `json:"flagged"`
	LastLandedAt  *time.Time        `json:"last_landed_at"`
	Failure       string            `json:"failure,omitempty"`
	Isolation     isolationState    `json:"isolation"`

	lost string // the workspace, if somebody has removed it
}

type daemonState struct {
	Running bool `json:"running"`
	PID     int  `json:"pid"`
}

type commandState struct {
	Argv  []string `json:"argv"`
	State string   `json:"state"`
	Exit  *int     `json:"exit"`
}

type isolationState struct {
	Network string      `json:"network"`
	Runtime string      `json:"runtime"`
	Limits  limitsState `json:"limits"`
	Weaker  []string    `json:"weaker"`
}

type limitsState struct {
	Memory string `json:"memory"`
	CPUs   string `json:"cpus"`
	PIDs   int    `json:"pids"`
}

// document looks at an airlock of this worktree, and heals its daemon. What another command has changed meanwhile is
// looked at again.
func (a *app) document(ctx context.Context, r airlock.Record) (document, error) {
	for tries := 3; ; tries-- {
		there := *a
		var said *bytes.Buffer
		there.message, said = keptBack(a.message)
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

func (a *app) documentNow(ctx context.Context, r airlock.Record) (document, error) {
	d := document{
		Version: documentVersion, Session: r.Session, Branch: r.BranchName(), State: string(r.Phase), Backend: r.Backend,
		BackendReason: r.Reason, ID: r.ID, Workspace: r.Workspace, UID: r.Phantom.UID, Base: r.Base,
		Holds: []promote.Hold{}, Waiting: []promote.Waiting{}, Flagged: []promote.Flagged{},
		Isolation: isolationState{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Weaker: []string{},
			Limits: limitsState{policy.SizeText(r.Isolation.Limits.Memory), strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), r.Isolation.Limits.PIDs}},
	}
	for _, w := range r.Isolation.Weaker {
		d.Isolation.Weaker = append(d.Isolation.Weaker, w.Text)
	}
	if err := a.heal(ctx, r); err != nil {
		return d, err
	}
	if a.store.WorkspaceGone(r) {
		d.lost = r.Workspace
	} else if err := a.warnTracked(ctx, r); err != nil {
		return d, err
	}
	pid, err := promote.DaemonPID(a.store, r.ID)
	far := errors.Is(err, promote.ErrElsewhere)
	if err != nil && !far {
		return d, err
	}
	d.Daemon = daemonState{pid != 0 || far, pid}
	if err := a.prisonState(ctx, r, &d); err != nil {
		return d, err
	}
	if d.lost != "" || a.store.Orphan(r) {
		d.State = "broken"
	}
	return d, a.promotion(ctx, r, &d)
}

// prisonState fills in what is known of the prison and its command. One whose engine does not answer is broken, for
// all one can see; that is said, and keeps nothing else from being shown.
func (a *app) prisonState(ctx context.Context, r airlock.Record, d *document) error {
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
		say(a.message, "look at the prison: %s", gitops.Escape(err.Error()))
		hint(a.message, hints(err)...)
		return nil
	}
	return err
}

// promotion fills in what is known of landing. That the workspace cannot be looked into is said, and
// keeps nothing else from being shown.
func (a *app) promotion(ctx context.Context, r airlock.Record, d *document) error {
	engine := a.engine(r)
	defer engine.Close()
	s, err := engine.State(ctx)
	if err != nil && s.Promoted == "" {
		return err
	}
	if err != nil {
		say(a.message, "look into the workspace: %s", gitops.Escape(err.Error()))
	}
	d.Promoted, d.InnerTip, d.Holds, d.Pending = s.Promoted, s.InnerTip, s.Holds, s.Pending
	d.Flagged = s.Flagged
	d.Uncommitted, d.Waiting, d.Landed, d.LastLandedAt = s.Uncommitted, s.Waiting, s.Landed, s.LastLandedAt
	d.Failure = s.Failure
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
		say(a.message, "the workspace %s was added to the index: git status now runs git inside it", r.Workspace)
		hint(a.message, "git rm -r -f -q --cached "+r.Workspace)
	}
	return err
}

func (a *app) launched(ctx context.Context, r airlock.Record) (*commandState, error) {
	spec, err := a.spec(r)
	if err != nil {
		return nil, err
	}
	l, err := a.backend(r).Launched(ctx, spec)
	if err != nil || l == nil {
		return nil, err
	}
	state := &commandState{Argv: l.Argv, State: "running"}
	if l.Exited {
		state.State, state.Exit = "exited", &l.Status
	}
	return state, nil
}

func printJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
