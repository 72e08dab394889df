package edge

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Open opens the repository of the current folder for a command.
func Open(c *cli.Context) (*session.Session, error) {
	return OpenAs(c, ui.Reporter{To: c.App.ErrWriter})
}

// OpenAs also takes the receiver of messages.
func OpenAs(c *cli.Context, report session.Reporter) (*session.Session, error) {
	caller, _ := hostenv.Original("SUDO_UID")
	sudo, err := strconv.Atoi(caller)
	if err != nil {
		sudo = 0
	}
	dry := slices.ContainsFunc(c.Lineage(), func(of *cli.Context) bool { return of.Bool(dryRunFlag.Name) })
	s, err := session.Open(c.Context, session.Options{Dry: dry, Report: report, Now: ui.Now, Sudo: sudo, Terminal: terminalLikeOurs()})
	if err == nil {
		s.Recorder = recorder{s, c.App.Version}
	}
	return s, err
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
	var ended *childStatus
	if err == nil || errors.As(err, &ended) || is[shown](err) || c.Err() != nil {
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
func Show(ctx context.Context, s *session.Session, command string, pages bool, print func(out io.Writer, p ui.Paint) error) error {
	return ui.Paging{Config: s.Config, Command: command, Pages: pages, Git: s.Repo.Pager}.Show(ctx, print)
}

// ShowWhole is like Show, and reports whether the pager took the output to its end.
func ShowWhole(ctx context.Context, s *session.Session, command string, print func(out io.Writer, p ui.Paint) error) (bool, error) {
	return ui.Paging{Config: s.Config, Command: command, Pages: true, Git: s.Repo.Pager}.ShowWhole(ctx, print)
}

// Painted returns the colours for standard output.
func Painted(s *session.Session) ui.Paint {
	return ui.Paint(ui.WantsColour(s.Config, ui.Stdout, "color.airlock", "color.ui"))
}
