package records

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/words"
)

func checkpointCommand() *cli.Command {
	c := cmdline.Command(&cli.Command{
		Name: "checkpoint", Usage: "keep the state of the workspace, and go back to it",
		UsageText: "git airlock checkpoint [-m TEXT]\ngit airlock checkpoint list|show|diff|restore",
		Description: "Keeps all files of the workspace: contents, modes, times and links, also of untracked and ignored files and of the inner\n" +
			"repository. Prints the number of the checkpoint, the id of the state, and the time that it took. Nothing is kept if a\n" +
			"file cannot be read. A file that a program writes through a shared mapping can have an older content, except with --whole.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "a `text` for the list"},
			&cli.BoolFlag{Name: "whole", Usage: "look at every file, and not only where a change was reported"}},
		Action: cmdline.OnAirlock(take),
	}, cmdline.Takes{})
	c.Subcommands = []*cli.Command{
		cmdline.Subcommand("checkpoint", "list [--json]", "list the checkpoints, oldest first", cmdline.Takes{}, onKeeper(list), cmdline.JSONFlag),
		cmdline.Subcommand("checkpoint", "show N [--json] [-- PATH...]", "list the files of a checkpoint", cmdline.Takes{Least: 1, Most: 1, Paths: true}, onKeeper(show), cmdline.JSONFlag),
		cmdline.Subcommand("checkpoint", "diff N [M] [--json] [-- PATH...]", "list the differences to another checkpoint, or to the present state",
			cmdline.Takes{Least: 1, Most: 2, Paths: true}, onKeeper(diff), cmdline.JSONFlag),
		cmdline.Subcommand("checkpoint", "restore N [--stop | --freeze] [--keep-new] [-- PATH...]", "make the workspace what it was, while its prison is stopped or frozen",
			cmdline.Takes{Least: 1, Most: 1, Paths: true}, onKeeper(restore),
			&cli.BoolFlag{Name: "stop", Usage: "stop the prison first, as git airlock stop does"},
			&cli.BoolFlag{Name: "freeze", Usage: "freeze all processes in the prison, and let them go on afterwards"},
			&cli.BoolFlag{Name: "keep-new", Usage: "remove no files that the checkpoint does not have"}),
	}
	return c
}

// onKeeper makes an action of a function that needs the checkpoints of the airlock here.
func onKeeper(act func(c *cli.Context, s *session.Session, k checkpoints.Keeper, numbers []int) error) cmdline.SubAction {
	return func(c *cli.Context, s *session.Session, words []string) error {
		numbers, err := numbersIn(c, words)
		if err != nil {
			return err
		}
		r, err := s.Here(c.Context)
		if err != nil {
			return err
		}
		return act(c, s, cmdline.Checkpoints(s, r), numbers)
	}
}

func numbersIn(c *cli.Context, words []string) (numbers []int, err error) {
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, ui.Usagef("%s: %q is not a number from the first column of git airlock checkpoint list", cmdline.CommandName(c), gitops.Text(word))
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// scopeIn returns the paths after "--". "./a" and "a/" are "a".
func scopeIn(c *cli.Context) (scope checkpoint.Scope) {
	for _, name := range cmdline.Inside(c) {
		scope = append(scope, path.Clean(name))
	}
	return scope
}

func take(c *cli.Context, s *session.Session, r airlock.Record) error {
	k := cmdline.Checkpoints(s, r)
	if s.Dry {
		err := k.CheckTake()
		if err == nil {
			s.Report.Say("would make a checkpoint of %s", r.Workspace)
		}
		return err
	}
	t, err := k.Take(c.Context, c.String("message"), c.Bool("whole"))
	if err != nil {
		return err
	}
	for _, missing := range []struct {
		n    int
		what string
	}{
		{t.Special, "devices, pipes or sockets"}, {t.Extended, "extended attributes of files"},
	} {
		if missing.n > 0 {
			s.Report.Say("not in the checkpoint: %s (%d)", missing.what, missing.n)
		}
	}
	if t.Linked > 0 {
		s.Report.Say("%s: a restore makes separate files of them", words.Count(t.Linked, "hard link"))
	}
	for _, path := range t.Changing {
		s.Report.Say("changed while it was read: %s", gitops.Text(path))
	}
	_, err = fmt.Fprintf(c.App.Writer, "checkpoint %d  %s  %d ms\n", t.Number, short(t.Checkpoint), t.Took.Milliseconds())
	return err
}

// short returns the abbreviated ids of a state.
func short(c checkpoint.Checkpoint) string {
	return fmt.Sprintf("%.12s %.12s", c.Tree, cmp.Or(c.Git, strings.Repeat("-", 12)))
}

// listed is a checkpoint of version 1 of checkpoint list --json. Its text is escaped.
type listed struct {
	Number  int       `json:"number"`
	Time    time.Time `json:"time"`
	Tree    string    `json:"tree"`
	Git     string    `json:"git"` // empty without an inner repository
	Message string    `json:"message"`
}

func listedOf(c checkpoint.Checkpoint) listed {
	return listed{c.Number, c.Time, c.Tree, c.Git, gitops.Text(c.Message).String()}
}

func list(c *cli.Context, s *session.Session, k checkpoints.Keeper, _ []int) error {
	all, bytes, err := k.List(c.Context)
	if err != nil {
		return err
	}
	var shown []listed
	for _, x := range all {
		shown = append(shown, listedOf(x))
	}
	d := map[string]any{"version": ui.DocumentVersion, "bytes": bytes, "checkpoints": shown}
	return cmdline.Print(c, s, true, d, func(out io.Writer, p ui.Paint) error {
		err := cmdline.Lines(all, lineOf)(out, p)
		fmt.Fprintf(out, "%s, %s\n", words.Count(len(all), "checkpoint"), words.Bytes(bytes))
		return err
	})
}

func lineOf(p ui.Paint, c checkpoint.Checkpoint) string {
	return strings.TrimRight(fmt.Sprintf("%4d  %s  %s  %s", c.Number, c.Time.Local().Format(time.DateTime), p.Yellow(short(c)), gitops.Text(c.Message)), " ")
}

// changed is a difference in version 1 of checkpoint diff --json, and a file in that of checkpoint show --json.
type changed struct {
	Path string          `json:"path"` // escaped
	What checkpoint.What `json:"what"`
	Kind string          `json:"kind"`
}

// changesDocument is version 1 of checkpoint show --json and checkpoint diff --json.
type changesDocument struct {
	Version    int       `json:"version"`
	Checkpoint *listed   `json:"checkpoint,omitempty"`
	Files      []changed `json:"files"`
}

// print prints differences below a heading, which may be empty.
func (d changesDocument) print(c *cli.Context, s *session.Session, heading func(ui.Paint) string) error {
	return cmdline.Print(c, s, true, d, func(out io.Writer, p ui.Paint) error {
		if heading != nil {
			fmt.Fprintln(out, heading(p))
		}
		return cmdline.Lines(d.Files, func(_ ui.Paint, f changed) string { return fmt.Sprintf("%-8s %-7s %s", f.What, f.Kind, f.Path) })(out, p)
	})
}

func documentOf(changes []checkpoint.Change) changesDocument {
	d := changesDocument{Version: ui.DocumentVersion}
	for _, x := range changes {
		d.Files = append(d.Files, changed{shown(x.Path), x.What, x.Kind.String()})
	}
	return d
}

// shown returns one of the agent's paths for people.
func shown(path string) string { return gitops.Text(cmp.Or(path, ".")).String() }

func show(c *cli.Context, s *session.Session, k checkpoints.Keeper, numbers []int) error {
	found, all, err := k.Show(c.Context, numbers[0], scopeIn(c))
	if err != nil {
		return err
	}
	d, about := documentOf(all), listedOf(found)
	d.Checkpoint = &about
	for i := range d.Files {
		d.Files[i].What = ""
	}
	return d.print(c, s, func(p ui.Paint) string { return lineOf(p, found) })
}

func diff(c *cli.Context, s *session.Session, k checkpoints.Keeper, numbers []int) error {
	all, err := k.Diff(c.Context, numbers[0], append(numbers, 0)[1], scopeIn(c))
	if err != nil {
		return err
	}
	return documentOf(all).print(c, s, nil)
}

func restore(c *cli.Context, s *session.Session, k checkpoints.Keeper, numbers []int) error {
	if c.Bool("stop") && c.Bool("freeze") {
		return ui.Usagef("checkpoint restore: use one of --stop and --freeze")
	}
	o := checkpoints.Restore{Number: numbers[0], Scope: scopeIn(c), KeepNew: c.Bool("keep-new"), Freeze: c.Bool("freeze"), Show: func(write, remove []string) error {
		return printPlan(c.App.Writer, write, remove)
	}}
	if err := k.CheckNumber(c.Context, o.Number); err != nil { // before a hint at --stop, which would not help
		return err
	}
	if s.Dry {
		return k.Foretell(c.Context, o, c.Bool("stop"))
	}
	if c.Bool("stop") {
		if err := k.Check(c.Context, o, true); err != nil {
			return err
		}
		err := s.Stop(c.Context, k.Record)
		if held, ok := errors.AsType[*environment.Refusal](err); ok {
			s.Report.Say("%s", held.Text)
		} else if err != nil {
			return err
		}
	}
	last, err := ledger.ReadOutcome(s.Store.Dir(k.Record.ID))
	if err != nil {
		return err
	}
	before, err := k.Restore(c.Context, o)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("checkpoint %d is restored", o.Number)
	if len(o.Scope) > 0 {
		what = fmt.Sprintf("restored from checkpoint %d: %s", o.Number, checkpoints.Paths(o.Scope))
	}
	s.Report.Say("%s, and the hashes of the workspace's files are as planned", what)
	err = promoteRestored(c.Context, s, k.Record, last)
	s.Report.Hint(checkpoints.Command(before.Number, o.Freeze) + "  # undoes it")
	return err
}

// objectFolder is the folder of git's objects, of which a plan has hundreds of paths.
const objectFolder = ".git/objects/"

// printPlan prints the paths that a restore writes and removes. It counts git's objects.
func printPlan(out io.Writer, write, remove []string) (err error) {
	for _, part := range []struct {
		word  string
		paths []string
	}{{"write", write}, {"remove", remove}} {
		objects := 0
		for _, path := range part.paths {
			if strings.HasPrefix(path, objectFolder) {
				objects++
				continue
			}
			if _, err = fmt.Fprintf(out, "%-6s %s\n", part.word, shown(path)); err != nil {
				return err
			}
		}
		if objects == 0 {
			continue
		}
		if _, err = fmt.Fprintf(out, "%-6s %s\n", part.word, words.Count(objects, "path")+" in "+objectFolder); err != nil {
			return err
		}
	}
	return nil
}
