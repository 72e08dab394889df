package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/edge"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

func runsCommand() *cli.Command {
	c := edge.Command(&cli.Command{
		Name: "runs", Usage: "list the records of runs",
		UsageText: "git airlock runs [--json]\ngit airlock runs prune|push|fetch",
		Description: "A run is one command of \"git airlock run\", or one that start launched, from its start to its end. Each run has a record:\n" +
			"a commit below refs/airlock/runs, which no branch reaches. The list has the records of all airlocks of this repository, and\n" +
			"those that were fetched, oldest first. git-airlock-inspect(1) shows one.\n\n" +
			"Nothing is pushed by itself. push and fetch print the git command that does the same.",
		Flags: []cli.Flag{edge.JSONFlag},
		Action: edge.InRepository(func(c *cli.Context, s *session.Session) error {
			return listRuns(c, s)
		}),
	}, edge.Takes{})
	c.Subcommands = []*cli.Command{
		edge.Subcommand("runs", "prune", "remove the oldest records, beyond airlock.runs.keep for each session", edge.Takes{}, pruneRuns),
		edge.Subcommand("runs", "push [REMOTE]", "push all records to a remote (origin)", edge.Takes{Most: 1}, transfer("push")),
		edge.Subcommand("runs", "fetch [REMOTE]", "fetch all records of a remote (origin)", edge.Takes{Most: 1}, transfer("fetch")),
	}
	return c
}

// listedRun is a run in version 1 of runs --json. Its texts are escaped.
type listedRun struct {
	Name    string        `json:"name"`
	Commit  gitops.OID    `json:"commit"`
	Session string        `json:"session"`
	Run     int           `json:"run"`
	Argv    []string      `json:"argv"`
	Started time.Time     `json:"started"`
	Ended   time.Time     `json:"ended"`
	Exit    *int          `json:"exit"`
	Status  record.Status `json:"status"`
	Landed  int           `json:"landed"`
	Error   string        `json:"error,omitempty"` // why the record cannot be read
}

func listedRunOf(e store.Entry) listedRun {
	m := e.Manifest
	l := listedRun{Name: e.Name(), Commit: e.Commit, Session: e.Session, Run: e.Number, Argv: []string{}, Started: m.Started, Ended: m.Ended, Exit: m.Exit, Landed: m.Landed,
		Status: record.Status(gitops.Text(m.Status).String())}
	for _, word := range m.Argv {
		l.Argv = append(l.Argv, gitops.Text(word).String())
	}
	if e.Err != nil {
		l.Error = gitops.Text(e.Err.Error()).String()
	}
	return l
}

func listRuns(c *cli.Context, s *session.Session) error {
	all, err := store.List(c.Context, s.Repo)
	if err != nil {
		return err
	}
	if c.Bool(edge.JSONFlag.Name) {
		listed := []listedRun{}
		for _, e := range all {
			listed = append(listed, listedRunOf(e))
		}
		return ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "runs": listed})
	}
	return edge.Show(c.Context, s, "runs", true, func(out io.Writer, p ui.Paint) error {
		for _, e := range all {
			if _, err := fmt.Fprintln(out, runLine(p, e)); err != nil {
				return err
			}
		}
		return nil
	})
}

// commandShown is the number of characters of a command line in the list.
const commandShown = 60

func runLine(p ui.Paint, e store.Entry) string {
	if e.Err != nil {
		return fmt.Sprintf("%s  %s", p.Yellow(e.Name()), p.Red("cannot be read: "+gitops.Text(e.Err.Error()).String()))
	}
	m := e.Manifest
	status := fmt.Sprintf("%-14s", gitops.Text(m.Status).String())
	if m.Status != record.Completed && m.Status != record.CompletedHeld {
		status = p.Red(status)
	}
	return fmt.Sprintf("%s  %s  %s %5s  %2d landed  %s", p.Yellow(e.Name()), m.Started.Local().Format(time.DateTime), status, lasted(m), m.Landed, m.Command(commandShown))
}

// lasted returns how long a run lasted, in one unit.
func lasted(m record.Manifest) string {
	d := m.Ended.Sub(m.Started)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 10*time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	}
	return fmt.Sprintf("%.0fh", d.Hours())
}

// runKeep is the default of airlock.runs.keep.
const runKeep = "50"

func pruneRuns(c *cli.Context, s *session.Session, _ []string) error {
	const key = "airlock.runs.keep"
	keep, err := strconv.Atoi(s.Config.String(key, runKeep))
	if err != nil || keep < 1 {
		return &promote.SettingError{Key: key, Value: s.Config.String(key, runKeep), Want: "a number of records, from 1"}
	}
	all, err := store.Refs(c.Context, s.Repo)
	if err != nil {
		return err
	}
	var updates []gitops.RefUpdate
	for i, e := range all {
		if later := i + keep; later < len(all) && all[later].Session == e.Session {
			updates = append(updates, gitops.RefUpdate{Ref: e.Ref, Old: e.Commit})
		}
	}
	switch {
	case len(updates) == 0:
		s.Report.Say("nothing to remove: no session has more than %d records", keep)
		return nil
	case s.Dry:
		s.Report.Say("would remove %s, and keep the newest %d of each session", words.Count(len(updates), "record"), keep)
		return nil
	}
	if err := s.Repo.UpdateRefs(c.Context, "airlock: runs prune", updates...); err != nil {
		return err
	}
	s.Report.Say("removed %s; git gc removes their objects later", words.Count(len(updates), "record"))
	return nil
}

// transfer pushes or fetches all records.
func transfer(verb string) edge.SubAction {
	return func(c *cli.Context, s *session.Session, words []string) error {
		remote := "origin"
		if len(words) > 0 {
			remote = words[0]
		}
		if strings.HasPrefix(remote, "-") {
			return ui.Usagef("runs %s: %q is not a remote", verb, gitops.Text(remote).String())
		}
		args := []string{verb, remote, record.RefPrefix + "*:" + record.RefPrefix + "*"}
		s.Report.Say("git %s %s '%s'", args[0], gitops.Pasteable(args[1]), args[2])
		if s.Dry {
			return nil
		}
		err := s.Repo.Change(c.Context, gitops.Call{Args: args, Stdout: io.Discard})
		if _, ok := errors.AsType[*gitops.Error](err); ok {
			return environment.Advise(fmt.Errorf("git %s: %w", verb, err), fmt.Sprintf("git %s %s '%s'", args[0], gitops.Pasteable(args[1]), args[2]))
		}
		store.PackRefs(c.Context, s.Repo)
		return err
	}
}

// find returns the run with a name, and all records.
func find(ctx context.Context, s *session.Session, name string) (store.Entry, []store.Entry, error) {
	read := store.Refs
	if name == "last" {
		read = store.List // the times are needed
	}
	all, err := read(ctx, s.Repo)
	if err != nil {
		return store.Entry{}, nil, err
	}
	here := ""
	if r, err := s.Store.Here(); err == nil && r != nil {
		here = r.Session
	}
	e, err := store.Find(all, name, here)
	if err != nil {
		return e, all, environment.Advise(err, "git airlock runs")
	}
	return e, all, nil
}
