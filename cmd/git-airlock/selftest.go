package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/selftest"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

func selftestCommand(inside []string) *cli.Command {
	return command(&cli.Command{
		Name: "selftest", Usage: "check from inside whether the running prison keeps its promises",
		UsageText: "git airlock selftest [--json]",
		Description: "Tries, as the agent, to do what a prison promises to prevent, and prints one line for each promise, with the attempt\n" +
			"and the result. Then it reads all text that an agent could read, and searches it for the name of this tool, your name,\n" +
			"e-mail address, home, host and repository. The checks use processes of the prison: a running agent that is near its\n" +
			"limit may fail to start one meanwhile.\n\n" +
			"A line begins with \"kept\", with \"weaker\" (a missing measure, which status names, too), with \"BROKEN\" (a promise is not\n" +
			"kept) or with \"LEAK\" (one of these words was found). The last two give exit status 1.",
		Flags: []cli.Flag{jsonFlag},
		Action: onAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			report, err := s.Prisons().Selftest(c.Context, r)
			if err != nil {
				return err
			}
			if c.Bool(jsonFlag.Name) {
				err = ui.PrintJSON(c.App.Writer, selftestDocument{ui.DocumentVersion, report.Kept(), escapeReport(report)})
			} else {
				err = show(c.Context, s, "selftest", false, func(out io.Writer, p ui.Paint) error {
					printReport(out, p, escapeReport(report))
					return nil
				})
			}
			if err == nil && !report.Kept() {
				return told{errNotKept}
			}
			return err
		}),
	}, inside, false)
}

// selftestDocument is version 1 of selftest --json.
type selftestDocument struct {
	Version int  `json:"version"`
	Kept    bool `json:"kept"`
	selftest.Report
}

// escapeReport escapes the text from inside.
func escapeReport(r selftest.Report) selftest.Report {
	for i := range r.Results {
		r.Results[i].Seen = gitops.Text(r.Results[i].Seen).String()
	}
	for _, leaks := range [][]selftest.Leak{r.Leaks.Found, r.Leaks.Known} {
		for i := range leaks {
			leaks[i].Seen = gitops.Text(leaks[i].Seen).String()
		}
	}
	return r
}

func printReport(w io.Writer, p ui.Paint, r selftest.Report) {
	for _, result := range r.Results {
		word := p.Green("kept  ")
		switch {
		case result.Weaker:
			word = p.Yellow("weaker")
		case !result.Kept:
			word = p.Red("BROKEN")
		}
		fmt.Fprintf(w, "%s %-16s %s (%s): %s\n", word, result.Name, result.Promise, result.Tried, result.Seen)
	}
	for _, l := range r.Leaks.Found {
		fmt.Fprintf(w, "%s %s in %s: %s\n", p.Red("LEAK  "), l.Kind, l.Where, l.Seen)
	}
	for _, l := range r.Leaks.Known {
		fmt.Fprintf(w, "%s %s in %s: %s\n", p.Yellow("weaker"), l.Kind, l.Where, l.Seen)
	}
	fmt.Fprintf(w, "leak meter: %s in %d KiB from %s: %d found, %d known as weaker\n", ui.Count(r.Leaks.Words, "word"),
		r.Leaks.Bytes>>10, ui.Count(r.Leaks.Sources, "place"), len(r.Leaks.Found), len(r.Leaks.Known))
}
