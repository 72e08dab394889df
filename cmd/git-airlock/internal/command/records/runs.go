package records

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/words"
)

func runsCommand() *cli.Command {
	c := cmdline.Command(&cli.Command{
		Name: "runs", Usage: "list the records of runs",
		UsageText: "git airlock runs [--json]\ngit airlock runs prune|push|fetch",
		Description: "A run is one command of \"git airlock run\", or one that start launched, from its start to its end. Each run has a record:\n" +
			"a commit below refs/airlock/runs, which no branch reaches. The list has the records of all airlocks of this repository, and\n" +
			"those that were fetched, in the order in which the runs ended. git-airlock-inspect(1) shows one.\n\n" +
			"git log shows no records, except with --all. \"git log --exclude='refs/airlock/*' --all\" leaves them out.\n\n" +
			"Nothing is pushed by itself. push and fetch print the git command that does the same. fetch takes the records that this\n" +
			"repository does not have. It changes and removes none, fetches no tags, and takes no record of an airlock of this repository.",
		Flags:  []cli.Flag{cmdline.JSONFlag},
		Action: inAny(listRuns),
	}, cmdline.Takes{})
	c.Subcommands = []*cli.Command{
		cmdline.Subcommand("runs", "prune", "remove the oldest records, beyond airlock.runs.keep for each session", cmdline.Takes{}, pruneRuns),
		cmdline.Subcommand("runs", "push [REMOTE]", "push all records to a remote (origin)", cmdline.Takes{Most: 1}, onRemote(pushRuns)),
		cmdline.Subcommand("runs", "fetch [REMOTE]", "fetch all records of a remote (origin)", cmdline.Takes{Most: 1}, onRemote(cmdline.FetchRuns)),
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
	Fault   string        `json:"fault,omitempty"` // the first difference between the manifest and the commit
}

func listedRunOf(e store.Entry) listedRun {
	m := e.Manifest
	l := listedRun{Name: e.Name(), Commit: e.Commit, Session: e.Session, Run: e.Number, Argv: gitops.Escaped(m.Argv), Started: m.Started, Ended: m.Ended, Exit: m.Exit, Landed: m.Landed,
		Status: record.Status(gitops.Text(m.Status).String())}
	if e.Err != nil {
		l.Error = gitops.Text(e.Err.Error()).String()
	}
	if len(e.Faults) > 0 {
		l.Fault = gitops.Text(e.Faults[0]).String()
	}
	return l
}

func listRuns(c *cli.Context, s *session.Session) error {
	all, err := store.List(c.Context, s.Repo)
	if err != nil {
		return err
	}
	if len(all) == 0 && !c.Bool("json") {
		s.Report.Say("no run is recorded in this repository")
	}
	var listed []listedRun
	for _, e := range all {
		listed = append(listed, listedRunOf(e))
	}
	return cmdline.Print(c, s, true, map[string]any{"version": ui.DocumentVersion, "runs": listed}, cmdline.Lines(all, runLine))
}

// commandShown is the number of characters of a command line in the list.
const commandShown = 60

func runLine(p ui.Paint, e store.Entry) string {
	if e.Err != nil {
		return fmt.Sprintf("%s  %s", p.Yellow(e.Name()), p.Red("cannot be read: "+gitops.Text(e.Err.Error()).String()))
	}
	m := e.Manifest
	status := fmt.Sprintf("%-14s", gitops.Text(m.Status))
	if m.Status != record.Completed && m.Status != record.CompletedHeld {
		status = p.Red(status)
	}
	command := m.Command(commandShown)
	if len(e.Faults) > 0 {
		command = p.Red("not whole: " + gitops.Text(e.Faults[0]).String())
	}
	return fmt.Sprintf("%s  %s  %s %5s  %2d landed  %s", p.Yellow(e.Name()), m.Started.Local().Format(time.DateTime), status, lasted(m), m.Landed, command)
}

// lasted returns how long a run lasted, in one unit.
func lasted(m record.Manifest) string {
	d := m.Ended.Sub(m.Started)
	const most = 10 * 365 * 24 * time.Hour // anybody can push a record with any times
	switch {
	case d < 0 || d > most:
		return "?"
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
		return &gitops.SettingError{Key: key, Value: s.Config.String(key, runKeep), Want: "a number of records, from 1"}
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
		s.Report.Say("nothing to remove: no session has more than %s", words.Count(keep, "record"))
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

// onRemote makes an action of a function that needs the remote that the command line names.
func onRemote(act func(c *cli.Context, s *session.Session, remote string) error) cmdline.SubAction {
	return func(c *cli.Context, s *session.Session, names []string) error {
		remote, err := cmdline.RemoteOf(c, names)
		if err != nil {
			return err
		}
		return act(c, s, remote)
	}
}

func pushRuns(c *cli.Context, s *session.Session, remote string) error {
	return cmdline.Push(c, s, remote, cmdline.RunRefs)
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
	switch {
	case err != nil && name == "last" && len(all) == 0:
		return e, all, environment.Advise(errors.New("no run is recorded in this repository"),
			"git airlock run -- COMMAND", "git airlock runs fetch  # gets the records of a remote")
	case err != nil:
		return e, all, environment.Advise(err, "git airlock runs")
	}
	return e, all, nil
}
