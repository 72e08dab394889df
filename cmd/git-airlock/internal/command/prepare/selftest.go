package prepare

import (
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/selftest"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
)

// errNotKept reports a promise that the prison does not keep.
var errNotKept = errors.New("a promise is not kept")

func selftestCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "selftest", Usage: "check from inside whether the running prison keeps its promises",
		UsageText: "git airlock selftest [--json]",
		Description: "Tries, as the agent, to do what a prison promises to prevent, and prints one line for each promise, with the attempt\n" +
			"and the result. Then it reads all text that an agent could read, and searches it for the name of this tool, your name,\n" +
			"e-mail address, home, host and repository. The checks use processes of the prison: a running agent that is near its\n" +
			"limit may fail to start one meanwhile. The record of the run has these processes.\n\n" +
			"A line begins with \"kept\", with \"weaker\" (a missing measure, which status names, too), with \"BROKEN\" (a promise is not\n" +
			"kept) or with \"LEAK\" (one of these words was found). The last two give exit status 1.",
		Flags: []cli.Flag{cmdline.JSONFlag},
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			if s.Dry {
				return foretell(c, s, r)
			}
			report, err := s.Prisons().Selftest(c.Context, r)
			if err != nil {
				return err
			}
			if !report.Kept() {
				events.Broken(s.Store.Dir(r.ID), r.Session)
			}
			d := selftestDocument{ui.DocumentVersion, report.Kept(), cmdline.EscapeReport(report)}
			err = cmdline.Print(c, s, false, d, func(out io.Writer, p ui.Paint) error {
				cmdline.PrintReport(out, p, report)
				return nil
			})
			if err == nil && !report.Kept() {
				return cmdline.Shown(errNotKept)
			}
			return err
		}),
	}, cmdline.Takes{})
}

// selftestDocument is version 1 of selftest --json.
type selftestDocument struct {
	Version int  `json:"version"`
	Kept    bool `json:"kept"`
	selftest.Report
}

// foretell prints what a self-test would try.
func foretell(c *cli.Context, s *session.Session, r airlock.Record) error {
	if _, err := s.Prisons().Records(r); err != nil {
		return err
	}
	box, err := s.Prisons().Attach(c.Context, r)
	if err != nil {
		return err
	}
	s.Report.Say("would try as the agent: %s; and would search all text inside", strings.Join(selftest.Names(), ", "))
	return box.Close()
}
