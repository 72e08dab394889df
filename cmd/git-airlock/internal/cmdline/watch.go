package cmdline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

const (
	// watchPoll is the interval after which the status is read without a sign of a change. The agent's uncommitted changes give no
	// sign.
	watchPoll = 2 * time.Second
	// watchPause is the delay after a change, so that a burst of changes is shown at once.
	watchPause = 200 * time.Millisecond
)

// Watch shows what read returns again whenever it changes, until it is interrupted, its reader has gone, or the airlock is cleared.
func Watch(c *cli.Context, read func(context.Context, *session.Session) (ui.Printed, error)) error {
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	go func() {
		if ui.UntilUnread(os.Stdout) { // without changes there is no write that would fail
			cancel(ErrUnread)
		}
	}()
	c.Context = ctx
	said := &bytes.Buffer{}
	s, err := openAs(c, ui.Reporter{To: said})
	if err != nil {
		return err
	}
	show := func(v *ui.View) error {
		said.Reset()
		d, err := read(ctx, s)
		if err != nil {
			return err
		}
		return v.Show(d, said.String())
	}
	view := func() *ui.View { return ui.NewView(c.App.Writer, c.App.ErrWriter, Painted(s)) }
	err = watchWhile(ctx, s, show, view)
	if err == nil && errors.Is(context.Cause(ctx), ErrUnread) {
		return Shown(ErrUnread)
	}
	return err
}

// watchWhile watches until ctx ends or the airlock is cleared.
func watchWhile(ctx context.Context, s *session.Session, show func(*ui.View) error, newView func() *ui.View) error {
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	changes := daemon.Watch(ctx, s.Repo, s.Store, r)
	view := newView()
	defer view.Close()
	for ctx.Err() == nil {
		if err := show(view); err != nil {
			if ctx.Err() != nil {
				return nil // the error is only the interruption
			}
			return err
		}
		poll := time.After(watchPoll)
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case <-poll:
				waits = false
			case <-changes:
				time.Sleep(watchPause)
				waits = false
			case <-view.Tick:
				view.Draw()
			}
		}
	}
	return nil
}
