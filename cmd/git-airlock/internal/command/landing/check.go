package landing

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checking"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

func checkCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "check", Usage: "run your check of a commit in a prison of its own",
		UsageText: "git airlock check [--again] [--json] [REV|RANGE]",
		Description: "Runs the command of " + checks.Key + ", with sh, on exactly the tree of the commit: in a new prison with the system of the airlock,\n" +
			"or the one that start would use, without a network, without your variables and without untracked files. Without REV,\n" +
			"checks the last commit of the branch. REV can also be a commit that waits, as review names it. Of a RANGE such as\n" +
			"main..topic, checks each commit, oldest first, until one fails. A tree that was checked with the same command in the same system is\n" +
			"not checked again in this repository, except with --again. Others read the results in notes on trees, in\n" +
			checks.NotesRef + ". Exit status 1 if a commit fails, and 5 if the prison cannot be had here, which says nothing about the commit.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "again", Usage: "run the check even if there is a result"}, cmdline.JSONFlag},
		Action: cmdline.InRepository(func(c *cli.Context, s *session.Session) error {
			r, err := s.Here(c.Context)
			if errors.Is(err, session.ErrNoAirlock) {
				return check(c, s, nil)
			}
			if err != nil {
				return err
			}
			return cmdline.WithAirlock(c, s, func(c *cli.Context, s *session.Session, _ airlock.Record) error { return check(c, s, &r) })
		}),
	}, cmdline.Takes{Most: 1})
}

// check checks the commits that a command names. here is nil if there is no airlock.
func check(c *cli.Context, s *session.Session, here *airlock.Record) error {
	config := s.Config
	if here != nil {
		config = config.With(here.Settings)
	}
	setting, err := checks.Read(c.Context, s.Repo, config)
	if err != nil {
		return err
	}
	if setting.Command == "" {
		return environment.Advise(&session.RequestError{Text: checks.Key + " is not set, so there is no check to run"}, "git config "+checks.Key+" 'make test'")
	}
	commits, err := namedCommits(c, s, here)
	if err != nil {
		return err
	}
	r, err := checkedIn(c, s, here)
	if err != nil {
		return err
	}
	k := checker{c: c, s: s, record: r, setting: setting, out: c.App.Writer}
	k.runner = checking.Runner{Prisons: s.Prisons(), Config: s.Config, Now: s.Now, Running: func() { k.ran = true }}
	if c.Bool(cmdline.JSONFlag.Name) {
		k.out = c.App.ErrWriter
	}
	return k.all(commits)
}

// checkedIn returns the record with the system of the checks: of the airlock, or of the one that a start would make.
func checkedIn(c *cli.Context, s *session.Session, here *airlock.Record) (airlock.Record, error) {
	if here != nil {
		return *here, nil
	}
	q, err := request.Of(c, s, nil, nil)
	if err != nil {
		return airlock.Record{}, err
	}
	return s.Alone(c.Context, q)
}

// namedCommits returns the commits to check, oldest first.
func namedCommits(c *cli.Context, s *session.Session, here *airlock.Record) ([]gitops.OID, error) {
	name := "HEAD"
	for _, word := range cmdline.Words(c) {
		name = word
	}
	if here != nil && !strings.Contains(name, "..") {
		waiting, err := waitingCommit(c, s, *here, name)
		if err != nil || waiting != "" {
			return []gitops.OID{waiting}, err
		}
	}
	return cmdline.CommitsNamed(c.Context, s, name)
}

// waitingCommit returns the commit of the list of review that a name stands for, empty if there is none.
func waitingCommit(c *cli.Context, s *session.Session, r airlock.Record, name string) (gitops.OID, error) {
	engine := s.Engine(r)
	defer engine.Close()
	list, err := verdict.List(c.Context, engine)
	if err != nil {
		return "", err
	}
	found, err := verdict.Find(c.Context, engine, list, name)
	if errors.Is(err, history.ErrNotPending) {
		return "", nil
	}
	if err == nil && found.Commit == "" {
		err = fmt.Errorf("commit %s is not built yet, so its tree is not known", gitops.Text(name))
	}
	return found.Commit, err
}

// checker runs the checks of one command.
type checker struct {
	c       *cli.Context
	s       *session.Session
	record  airlock.Record
	setting checks.Check
	runner  checking.Runner
	out     io.Writer // of the checks
	ran     bool      // the last result is of a check that ran now
	results []checkResult
}

// checkResult is the result of one commit in a document.
type checkResult struct {
	Commit  gitops.OID `json:"commit"`
	Tree    gitops.OID `json:"tree"`
	Subject string     `json:"subject"`
	Passed  bool       `json:"passed"`
	Exit    int        `json:"exit"`
	Before  bool       `json:"before"` // the result is that of an earlier check
	System  string     `json:"system"`
	At      time.Time  `json:"at"`
	Took    int64      `json:"ms"`
}

// checkDocument is version 1 of check --json.
type checkDocument struct {
	Version int           `json:"version"`
	Passed  bool          `json:"passed"`
	Command string        `json:"command_sha256"`
	Checks  []checkResult `json:"checks"`
}

// all checks commits until one fails.
func (k *checker) all(commits []gitops.OID) error {
	passed := true
	for _, commit := range commits {
		subject, err := k.subject(commit)
		if err != nil {
			return err
		}
		if k.s.Dry && !k.known(commit) {
			k.s.Report.Say("would check %.12s %s", commit, subject)
			continue
		}
		if passed, err = k.one(commit, subject); err != nil {
			return err
		}
		if !passed {
			break
		}
	}
	if k.c.Bool(cmdline.JSONFlag.Name) {
		d := checkDocument{ui.DocumentVersion, passed, checks.Digest(k.setting.Command), k.results}
		if err := ui.PrintJSON(k.c.App.Writer, d); err != nil {
			return err
		}
	}
	if !passed {
		return cmdline.Shown(errors.New("a check failed"))
	}
	return nil
}

// known reports whether a check would find a result.
func (k *checker) known(commit gitops.OID) bool {
	r, err := k.runner.Known(k.c.Context, k.record, k.setting, commit)
	return err == nil && r != nil && !k.c.Bool("again") // of an image that is not built yet, nothing is known
}

// one checks a commit and prints the result.
func (k *checker) one(commit gitops.OID, subject string) (passed bool, err error) {
	k.ran = false
	r, err := k.runner.Run(k.c.Context, k.record, k.setting, commit, k.c.Bool("again"), k.out)
	if err != nil {
		return false, err
	}
	k.results = append(k.results, checkResult{commit, r.Tree, subject, r.Passed(), r.Exit, !k.ran, r.System, r.At.UTC(), r.Took})
	if k.c.Bool(cmdline.JSONFlag.Name) {
		return r.Passed(), nil
	}
	if !k.ran && !r.Passed() { // the output of an earlier check that failed, if there is one
		text, err := checking.Log(k.s.Store, k.record.ID, r)
		if err == nil {
			_, err = io.WriteString(k.out, text)
		}
		if err != nil {
			return false, err
		}
	}
	_, err = fmt.Fprintln(k.out, k.line(r, commit, subject))
	return r.Passed(), err
}

func (k *checker) line(r checks.Result, commit gitops.OID, subject string) string {
	p, before := cmdline.Painted(k.s), ""
	if !k.ran {
		before = " before"
	}
	word := p.Green("passed" + before)
	switch {
	case r.Exit == checks.TimeOver:
		word = p.Red("failed"+before) + " (its time was over)"
	case !r.Passed():
		word = fmt.Sprintf("%s (exit status %d)", p.Red("failed"+before), r.Exit)
	}
	took := (time.Duration(r.Took) * time.Millisecond).Round(100 * time.Millisecond)
	return fmt.Sprintf("%s: %.12s %s (%.1f s)", word, commit, subject, took.Seconds())
}

// subject returns the first line of a commit's message, escaped.
func (k *checker) subject(commit gitops.OID) (string, error) {
	list, err := k.s.Repo.Summaries(k.c.Context, 1, string(commit))
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Subject, nil
}
