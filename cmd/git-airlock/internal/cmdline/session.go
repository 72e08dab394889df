package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Open opens the repository of the current folder for a command.
func Open(c *cli.Context) (*session.Session, error) { return openAs(c, c.App.ErrWriter) }

// openAs also takes the writer of messages.
func openAs(c *cli.Context, messages io.Writer) (*session.Session, error) {
	s, err := session.Open(c.Context, optionsOf(c, messages))
	if err == nil {
		ui.Know(c.App.ErrWriter, s.Config)
		s.Recorder = recorder{s}
	}
	return s, err
}

func optionsOf(c *cli.Context, messages io.Writer) session.Options {
	dry := slices.ContainsFunc(c.Lineage(), func(of *cli.Context) bool { return of.Bool(dryRunFlag.Name) })
	caller, _ := hostenv.Original("SUDO_UID")
	sudo, err := strconv.Atoi(caller)
	if err != nil {
		sudo = 0
	}
	return session.Options{Dry: dry, Report: ui.Reporter{To: messages}, Now: ui.Now, Terminal: terminalLikeOurs(), Sudo: sudo, Version: c.App.Version}
}

// InAnyRepository is like [InRepository], but also opens a bare repository, and a copy of a repository whose airlock is in use. inert reports that
// the repository is a bare one or such a copy. Then act must leave airlocks alone.
func InAnyRepository(act func(c *cli.Context, s *session.Session, inert bool) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := Open(c)
		inert := true
		switch {
		case errors.Is(err, gitops.ErrBare):
			s, err = session.OpenBare(c.Context, optionsOf(c, c.App.ErrWriter))
		case errors.Is(err, session.ErrCopy):
			err = nil
		default:
			inert = false
		}
		if err != nil {
			return err
		}
		if inert {
			ui.Know(c.App.ErrWriter, s.Config)
		} else {
			finishOver(c.Context, s)
		}
		return act(c, s, inert)
	}
}

// InRepository opens the repository and then calls act.
func InRepository(act func(*cli.Context, *session.Session) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := Open(c)
		if err != nil {
			return err
		}
		finishOver(c.Context, s)
		return act(c, s)
	}
}

// OnAirlock also finds the airlock of this worktree, which must exist. If act fails because another command has cleared the airlock
// meanwhile, the error is ErrCleared.
func OnAirlock(act func(*cli.Context, *session.Session, airlock.Record) error) cli.ActionFunc {
	return InRepository(func(c *cli.Context, s *session.Session) error { return WithAirlock(c, s, act) })
}

// WithAirlock does the same in an open repository.
func WithAirlock(c *cli.Context, s *session.Session, act func(*cli.Context, *session.Session, airlock.Record) error) error {
	r, err := s.Here(c.Context)
	if err != nil {
		return err
	}
	err = act(c, s, r)
	if isSaid(err) || c.Err() != nil {
		return err
	}
	if _, gone := s.Current(r); errors.Is(gone, session.ErrCleared) {
		return gone
	}
	return err
}

// Checkpoints returns the keeper of an airlock's checkpoints.
func Checkpoints(s *session.Session, r airlock.Record) checkpoints.Keeper {
	return checkpoints.Keeper{Prisons: s.Prisons(), Record: r, Now: s.Now}
}

// Show prints the output of a command, with colours if git would use them, and on a terminal through git's pager if pages is true.
func Show(c *cli.Context, s *session.Session, pages bool, print func(out io.Writer, p ui.Paint) error) error {
	_, err := paging(c, s, pages).Show(c.Context, print)
	return err
}

// paging returns how the output of a command is paged. The setting of a subcommand is that of the command above it.
func paging(c *cli.Context, s *session.Session, pages bool) ui.Paging {
	command, _, _ := strings.Cut(CommandName(c), " ")
	return ui.Paging{Config: s.Config, Command: command, Pages: pages, Git: s.Repo.Pager, Dir: s.Repo.Top}
}

// Print prints the document of a command with --json, and otherwise shows what text prints, as [Show] does.
func Print(c *cli.Context, s *session.Session, pages bool, document any, text func(out io.Writer, p ui.Paint) error) error {
	if c.Bool(JSONFlag.Name) {
		return ui.PrintJSON(c.App.Writer, document)
	}
	return Show(c, s, pages, text)
}

// Lines returns a function for [Show] that prints a line for each value.
func Lines[T any](all []T, line func(p ui.Paint, one T) string) func(out io.Writer, p ui.Paint) error {
	return func(out io.Writer, p ui.Paint) error {
		for _, one := range all {
			if _, err := fmt.Fprintln(out, line(p, one)); err != nil {
				return err
			}
		}
		return nil
	}
}

// ShowWhole is like Show, and reports whether the pager took the output to its end.
func ShowWhole(c *cli.Context, s *session.Session, print func(out io.Writer, p ui.Paint) error) (bool, error) {
	return paging(c, s, true).Show(c.Context, print)
}

// CommitsNamed returns the commit that a word names, or the commits of a range, oldest first. A range can have none.
func CommitsNamed(ctx context.Context, s *session.Session, name string) ([]gitops.OID, error) {
	if !isRange(name) {
		commit, err := s.Repo.Commit(ctx, name)
		return []gitops.OID{commit}, err
	}
	all, err := s.Repo.Range(ctx, name)
	if err != nil {
		return nil, GitSaid(err)
	}
	if len(all) == 0 { // such as after a push that takes commits back
		s.Report.Say("%q has no commits", gitops.Text(name))
	}
	return all, nil
}

// isRange reports whether a word names a set of commits for git (gitrevisions(7)): A..B, A^@, A^!, A^- or A^-NUMBER.
func isRange(word string) bool {
	base := strings.TrimRight(word, "0123456789")
	return strings.Contains(word, "..") || strings.HasSuffix(word, "^@") || strings.HasSuffix(word, "^!") || strings.HasSuffix(base, "^-")
}

// Painted returns the colours for standard output.
func Painted(s *session.Session) ui.Paint { return ui.Colours(s.Config) }
