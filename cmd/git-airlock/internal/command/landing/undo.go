package landing

import (
	"errors"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/undo"
)

func undoCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "undo", Usage: "take the last landing back",
		UsageText: "git airlock undo [OP] [--revert]",
		Description: "Takes back all commits of the last landing: the branch, the index, the landed files and the notes are as they were before\n" +
			"it. Other changes of yours stay. What was undone never lands again by itself: redo makes the landing again, and approve lands\n" +
			"one of its commits. Exit status 3, and nothing changes, if there are other commits on top, if a remote has the commits, or if you\n" +
			"have changed a landed file: --revert then makes a commit. OP is the number of a landing in git airlock log --ops. Without\n" +
			"--revert it must be the last one. To take back one commit of several, undo their landing, and approve the others again.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "revert", Usage: "make a commit of yours that takes the landing back"}},
		Action: cmdline.OnAirlock(func(c *cli.Context, s *session.Session, r airlock.Record) error {
			number := 0
			for _, word := range cmdline.Words(c) {
				var err error
				if number, err = strconv.Atoi(word); err != nil || number < 1 {
					return ui.Usagef("undo: %q is not the number of a landing in git airlock log --ops; one commit of several: undo their landing, and approve the others", gitops.Text(word))
				}
			}
			engine := s.Engine(r)
			engine.Settings = s.Settings
			defer engine.Close()
			if c.Bool("revert") {
				o, made, err := undo.Revert(c.Context, engine, number)
				return moved(s, r, err, "reverted", o, made)
			}
			o, err := undo.Undo(c.Context, engine, number)
			if err = moved(s, r, err, "undone", o, o.Before); err != nil || s.Dry {
				return err
			}
			if len(o.Landed) == 1 {
				s.Report.Hint("git airlock redo  # lands it again")
			} else {
				s.Report.Hint("git airlock approve REV  # lands one of them again, see git airlock review", "git airlock redo  # lands all of them again")
			}
			return nil
		}),
	}, cmdline.Takes{Most: 1})
}

// moved reports what was done with an operation, or its refusal. tip is the commit of the branch after it.
func moved(s *session.Session, r airlock.Record, err error, done string, o operation.Operation, tip gitops.OID) error {
	var refused *undo.Refused
	switch {
	case errors.Is(err, operation.ErrUnknown):
		return environment.Advise(err, "git airlock log --ops")
	case errors.Is(err, operation.ErrNothing):
		return &environment.Refusal{Text: err.Error(), Next: []string{"git airlock log --ops"}}
	case errors.As(err, &refused):
		return &environment.Refusal{Text: refused.Message, Next: refused.Next}
	case err != nil:
		return err
	}
	if s.Dry {
		s.Report.Say("would be %s: operation %d, %s", done, o.Number, o.Title())
		return nil
	}
	s.Report.Say("%s: operation %d, %s; %s is at %.12s", done, o.Number, o.Title(), r.BranchName(), tip)
	return nil
}
