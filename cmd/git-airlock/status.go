package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func statusCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "status", Usage: "show what runs, what landed, what is held and why",
		UsageText:   "git airlock status [--json]",
		Description: exitStatusHelp,
		Flags:       []cli.Flag{jsonFlag},
		Action: inRepository(func(c *cli.Context, a *app) error {
			asJSON := c.Bool(jsonFlag.Name)
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
			d.print(a.out, time.Now())
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

// document looks at an airlock of this worktree, and heals its daemon.
func (a *app) document(ctx context.Context, r airlock.Record) (document, error) {
	d := document{
		Version: documentVersion, Session: r.Session, Branch: r.BranchName(), State: string(r.Phase), Backend: r.Backend,
		BackendReason: r.Reason, ID: r.ID, Workspace: r.Workspace, UID: r.Phantom.UID, Base: r.Base,
		Holds: []promote.Hold{}, Waiting: []promote.Waiting{}, Flagged: []promote.Flagged{},
		Isolation: isolationState{Network: r.Isolation.Network, Runtime: r.Isolation.Runtime, Weaker: append([]string{}, r.Isolation.Weaker...),
			Limits: limitsState{size(r.Isolation.Limits.Memory), strconv.FormatFloat(r.Isolation.Limits.CPUs, 'g', -1, 64), r.Isolation.Limits.PIDs}},
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
	if err != nil {
		return d, err
	}
	d.Daemon = daemonState{pid != 0, pid}
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
	var err error
	if r.Phase == airlock.Running {
		var runs bool
		if runs, err = a.prisonRuns(ctx, r); !runs {
			d.State = "broken"
		}
	}
	if err == nil {
		d.Command, err = a.launched(ctx, r)
	}
	var unavailable *prison.Unavailable
	if errors.As(err, &unavailable) {
		say(a.message, "look at the prison: %s", gitops.Escape(err.Error()))
		for _, h := range unavailable.Mend {
			fmt.Fprintln(a.message, "hint: "+h)
		}
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
		fmt.Fprintf(a.message, "hint: git rm -r -f -q --cached %s\n", r.Workspace)
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

// print shows a document to people, one fact a line.
func (d document) print(w io.Writer, now time.Time) {
	line := func(key, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", key, fmt.Sprintf(format, args...))
	}
	line("airlock", "%s on %s, %s", d.ID, gitops.Escape(d.Branch), d.State)
	line("prison", "%s (%s), network %s, %s memory, %s cpus, %d pids", d.Backend, d.BackendReason,
		d.Isolation.Network, d.Isolation.Limits.Memory, d.Isolation.Limits.CPUs, d.Isolation.Limits.PIDs)
	for _, weaker := range d.Isolation.Weaker {
		line("weaker", "%s", weaker)
	}
	line("landed", "%s%s", count(d.Landed, "commit"), ago(d.LastLandedAt, now))
	if len(d.Flagged) > 0 {
		line("flagged", "%s", flags(d.Flagged))
	}
	if d.Pending > 0 {
		line("pending", "%s: git log -p ..airlock/%s/pending", count(d.Pending, "commit"), d.ID)
	}
	for _, h := range d.Holds {
		printHold(h, line)
	}
	if d.Failure != "" {
		line("failing", "%s", d.Failure)
		line("next", "git airlock promote  # tries again, as the daemon does")
	}
	if d.Uncommitted > 0 {
		line("inside", "%s not committed", count(d.Uncommitted, "changed path"))
	}
	for _, x := range d.Waiting {
		line("inside", "%s on %s, which does not land by itself", count(x.Commits, "commit"), x.Ref)
	}
	if c := d.Command; c != nil {
		state := c.State
		if c.Exit != nil {
			state = fmt.Sprintf("exited with status %d", *c.Exit)
		}
		line("command", "%s: %s", gitops.Escape(strings.Join(c.Argv, " ")), state)
	}
	if d.lost != "" {
		line("lost", "the workspace %s is gone; start makes it anew of what the agent had committed on main", d.lost)
	}
	if d.State == "broken" {
		line("next", "git airlock start")
	}
}

// flags sums up what rules found in landed commits.
func flags(flagged []promote.Flagged) string {
	of := map[string]int{}
	for _, f := range flagged {
		for _, rule := range f.Rules {
			of[rule]++
		}
	}
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", rule, of[rule]))
	}
	return count(len(flagged), "landed commit") + ": " + strings.Join(parts, ", ") + ": git airlock policy"
}

// pathsShown bounds how many paths of a hold are shown to people; the JSON document has all.
const pathsShown = 10

func printHold(h promote.Hold, line func(key, format string, args ...any)) {
	line("held", "%s: %s", h.Reason, h.Message)
	for i, p := range h.Paths {
		if i == pathsShown {
			line("", "  and %d more", len(h.Paths)-i)
			break
		}
		line("", "  %s", p)
	}
	for _, next := range h.Next {
		line("next", "%s", next)
	}
}

func ago(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(", the last %s ago", now.Sub(*t).Truncate(time.Second))
}
