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
		Name: "selftest", Usage: "try the running prison's walls from inside",
		UsageText: "git airlock selftest [--json]",
		Description: "Tries, as the agent, what a prison promises to prevent: one line for each promise with what was tried and seen.\n" +
			"Then it reads all that an agent could read and looks for the name of this tool and for yours, your e-mail address,\n" +
			"home, host and repository. An agent at work may find no free process for a moment. A line begins with \"kept\",\n" +
			"\"weaker\" (status names that already), \"BROKEN\" (a promise that is not kept) or \"LEAK\" (a word that was found);\n" +
			"either of the last two is exit status 1.",
		Flags: []cli.Flag{jsonFlag},
		Action: onAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			report, err := s.Selftest(c.Context, r)
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

// selftestDocument is version 1 of what selftest --json prints.
type selftestDocument struct {
	Version int  `json:"version"`
	Kept    bool `json:"kept"`
	selftest.Report
}

// escapeReport makes what comes from inside harmless to terminals.
func escapeReport(r selftest.Report) selftest.Report {
	for i := range r.Results {
		r.Results[i].Seen = gitops.Escape(r.Results[i].Seen)
	}
	for _, leaks := range [][]selftest.Leak{r.Leaks.Found, r.Leaks.Known} {
		for i := range leaks {
			leaks[i].Seen = gitops.Escape(leaks[i].Seen)
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
