package records

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/programs"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/words"
)

func execsCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "execs", Usage: "list the programs that ran in the prison",
		UsageText: "git airlock execs [RUN] [--tree] [--top] [--since COMMIT] [--json]",
		Description: "Prints each call of execve(2) in the prison, oldest first: its number, the time, the exit status of the process, the time that\n" +
			"it took, and the command line with secrets masked. \"-\" as status means that no program ran, or that it has not ended.\n" +
			"Only --json has the calls with which a shell has looked for a program in the folders of PATH.\n\n" +
			"With a RUN, the programs are those in the record of that run, see git-airlock-inspect(1). This works in every repository that\n" +
			"has the record.\n\n" +
			"The record is made outside of the prison. It contains no commands that a shell has built in, and no code inside an\n" +
			"interpreter. \"disputed\" marks a program that may have had other arguments than the ones shown, see git-airlock-workflows(7).",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "tree", Usage: "show each program below the one that started it"},
			&cli.BoolFlag{Name: "top", Usage: "only what the launched command started itself, such as the commands of a shell"},
			&cli.StringFlag{Name: "since", Usage: "only programs that started after your `COMMIT` was made"},
			cmdline.JSONFlag,
		},
		Action: func(c *cli.Context) error {
			if len(cmdline.Words(c)) == 0 { // those of the airlock here
				return cmdline.InRepository(listExecs)(c)
			}
			return inAny(listExecs)(c)
		},
	}, cmdline.Takes{Most: 1})
}

func listExecs(c *cli.Context, s *session.Session) error {
	if c.Bool("tree") && c.Bool(cmdline.JSONFlag.Name) {
		return ui.Usagef("execs: --tree is for people; in the document, ppid is the parent")
	}
	wanted := programs.Selection{Top: c.Bool("top"), Since: c.String("since")}
	if words := cmdline.Words(c); len(words) > 0 {
		_, run, err := recordOf(c.Context, s, words[0])
		if err != nil {
			return err
		}
		found, missing, err := programs.Recorded(c.Context, s.Repo, run, wanted)
		return showExecs(c, s, found, missing, err)
	}
	return cmdline.WithAirlock(c, s, func(c *cli.Context, s *session.Session, r airlock.Record) error {
		found, missing, err := programs.Read(c.Context, s.Prisons(), r, wanted)
		return showExecs(c, s, found, missing, err)
	})
}

func showExecs(c *cli.Context, s *session.Session, found []execs.Record, missing uint64, err error) error {
	if errors.Is(err, gitops.ErrNoCommit) {
		return environment.Advise(err, "git log")
	}
	if err != nil {
		return err
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		d := execsDocument{Version: ui.DocumentVersion, Missing: missing}
		for _, r := range found {
			d.Programs = append(d.Programs, programs.Shown(r))
		}
		return ui.PrintJSON(c.App.Writer, d)
	}
	found = programs.WithoutTries(found)
	rows := make([]programs.Row, len(found))
	for i, r := range found {
		rows[i].Record = r
	}
	if c.Bool("tree") {
		rows = programs.Tree(found)
	}
	err = cmdline.Show(c, s, true, func(out io.Writer, p ui.Paint) error {
		err := cmdline.Lines(rows, execLine)(out, p)
		fmt.Fprintln(out, words.Count(len(rows), "program"))
		return err
	})
	if missing > 0 {
		s.Report.Say("%s missing: the oldest are removed beyond 64 MiB, a run keeps 8 MiB of its own, and a recorder that is killed loses some", words.Count(int(missing), "record"))
	}
	return err
}

// execsDocument is version 1 of what execs --json prints. Its text is escaped.
type execsDocument struct {
	Version  int            `json:"version"`
	Missing  uint64         `json:"missing"`
	Programs []execs.Record `json:"programs"`
}

// maxIndent bounds the indentation of a tree, which the agent can make deep.
const maxIndent = 30

func execLine(p ui.Paint, r programs.Row) string {
	exit, took := "-", "-"
	if r.Exit != nil {
		exit = fmt.Sprint(*r.Exit)
	}
	if r.MS != nil {
		took = (time.Duration(*r.MS) * time.Millisecond).String()
	}
	exit = fmt.Sprintf("%4s", exit)
	if r.Exit != nil && *r.Exit != 0 {
		exit = p.Yellow(exit)
	}
	line := fmt.Sprintf("%6d  %s  %s  %8s  %s%s", r.Seq, r.Time.Local().Format(time.DateTime), exit, took,
		strings.Repeat("  ", min(r.Depth, maxIndent)), programs.Command(r.Record))
	switch {
	case r.Deny != nil:
		line += "  " + p.Red("denied") + " (" + gitops.Text(*r.Deny).String() + ")"
	case r.Disputed:
		reason := "it ended before its arguments could be compared"
		if r.Exe != nil {
			reason = gitops.Text(*r.Exe).String()
		}
		line += "  " + p.Red("disputed") + " (" + reason + ")"
	case !r.Ran():
		line += "  (did not run)"
	}
	return line
}
