package review

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

func reviewCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "review", Usage: "list the commits that wait for your verdict",
		UsageText: "git airlock review [-p | --since-review] [--no-seen] [REV...]\n   git airlock review --tool[=TOOL] [REV...]\n   git airlock review --json | --watch",
		Description: "Lists pending and rejected commits, oldest first. Each has a number, which other commands accept and which it keeps, its\n" +
			"state, id, lines and files. With airlock.review=push, landed commits that may not be pushed yet come first, without a\n" +
			"number. Exit status 3 while a commit waits for a verdict.\n\n" +
			"States: new, seen (a terminal has shown all its files to the end, by -p or diff), approved, rejected, asked (the agent must\n" +
			"fix it), changed (it replaces a commit that had a verdict or was seen), landed (may not be pushed yet), undone, or blocked\n" +
			"(it does not apply without a commit that was rejected, undone or must be fixed).\n\n" +
			"Typical use:\n\n" +
			"     git airlock review -p             # read what waits\n" +
			"     git airlock reject -m 'why' 2     # leave commit 2 out\n" +
			"     git airlock approve --all         # land the rest",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "patch", Aliases: []string{"p"}, Usage: "show the changes of each commit, too; what goes into a pipe does not count as seen"},
			&cli.BoolFlag{Name: "since-review", Usage: "show only what you have not seen: of an amended commit, what the amendment changed"},
			&cli.StringFlag{Name: "tool", Usage: "open your difftool, or after an equals sign the one with this name, `TOOL`, on two folders with the files before and after"},
			&cli.BoolFlag{Name: "watch", Usage: "print the list again whenever it changes, until ^C"},
			noSeenFlag, cmdline.JSONFlag,
		},
		Action: onList(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			if c.Bool("watch") {
				if c.Bool(cmdline.JSONFlag.Name) || c.Bool("patch") || c.Bool("since-review") || len(cmdline.Words(c)) > 0 {
					return ui.Usagef("review: --watch shows the whole list and goes with no other option")
				}
				return cmdline.Watch(c, readList)
			}
			d, err := documentOf(c.Context, s, r, cmdline.Words(c))
			if err != nil {
				return err
			}
			switch {
			case c.IsSet("tool"):
				return openTool(c.Context, s, r, d, c.String("tool"))
			case c.Bool(cmdline.JSONFlag.Name):
				if err = d.addMessages(c.Context, s); err == nil {
					err = ui.PrintJSON(c.App.Writer, d)
				}
			case c.Bool("since-review"):
				err = showUnseen(c, s, r, d)
			default:
				err = showList(c, s, r, d)
			}
			if err != nil || !d.waits() {
				return err
			}
			return cmdline.Shown(&environment.Refusal{Text: "commits wait for a verdict"})
		}),
	}, cmdline.Takes{Most: mostCommits})
}

func readList(ctx context.Context, s *session.Session) (ui.Printed, error) {
	r, err := hereOrNone(ctx, s)
	if err != nil {
		return nil, err
	}
	return documentOf(ctx, s, r, nil)
}

// showList shows the list, and with -p the changes.
func showList(c *cli.Context, s *session.Session, r airlock.Record, d document) error {
	shown := changes{s: s}
	var more func(context.Context, io.Writer, ui.Paint, reviewed) error
	if c.Bool("patch") {
		more = shown.show
	}
	whole, err := cmdline.ShowWhole(c, s, func(out io.Writer, p ui.Paint) error {
		return newListing(d, p).print(c.Context, out, more)
	})
	if err == nil && whole && more != nil && !c.Bool(noSeenFlag.Name) {
		shown.record(c.Context, r)
	}
	if err == nil && d.waits() && ui.CanAsk() {
		s.Report.Hint("git airlock review -p  # then: git airlock approve, reject -m WHY or fix -m WHY, with a number")
	}
	return err
}

// showUnseen shows what the user has not seen of the commits that wait for a verdict.
func showUnseen(c *cli.Context, s *session.Session, r airlock.Record, d document) error {
	d.Rebased = nil
	d.Commits = slices.DeleteFunc(d.Commits, func(x reviewed) bool { return !x.State.Waits() || len(x.of.Unseen()) == 0 && x.Replaces == "" })
	engine := s.Engine(r)
	defer engine.Close()
	var list []verdict.Reviewable
	for _, x := range d.Commits {
		if !x.landed {
			list = append(list, x.of)
		}
	}
	shown := changes{s: s, unseen: true}
	if len(d.Commits) == 0 {
		_, err := fmt.Fprintln(c.App.Writer, "you have seen everything that waits")
		return err
	}
	whole, err := cmdline.ShowWhole(c, s, func(out io.Writer, p ui.Paint) (err error) {
		if len(list) > 0 {
			if shown.inter, err = verdict.Interdiffs(c.Context, engine, list, bool(p)); err != nil {
				return err
			}
		}
		return newListing(d, p).print(c.Context, out, shown.show)
	})
	if err == nil && whole && !c.Bool(noSeenFlag.Name) {
		shown.record(c.Context, r)
	}
	return err
}
