package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/git-airlock/git-airlock/promote/daemon"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

const (
	// watchPoll is how often the status is looked up whatever the signs of a change say: what the agent has not
	// committed gives none.
	watchPoll = 2 * time.Second
	// watchPause keeps a burst of changes from being looked at one by one.
	watchPause = 200 * time.Millisecond
)

// watch shows the status again whenever it changes, until it is interrupted, nobody reads it or the airlock is gone.
func watch(c *cli.Context) error {
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	go func() {
		if ui.UntilUnread(os.Stdout) { // where nothing changes, no write would tell
			cancel(errUnread)
		}
	}()
	c.Context = ctx
	said := &bytes.Buffer{}
	s, err := openAs(c, ui.Reporter{To: said})
	if err != nil {
		return err
	}
	view := func() *ui.View { return ui.NewView(c.App.Writer, c.App.ErrWriter, painted(s)) }
	err = watchWhile(ctx, s, said, view)
	if err == nil && errors.Is(context.Cause(ctx), errUnread) {
		return told{errUnread}
	}
	return err
}

// watchWhile watches until ctx ends or the airlock is gone.
func watchWhile(ctx context.Context, s *session.Session, said *bytes.Buffer, newView func() *ui.View) error {
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	changes := daemon.Watch(ctx, s.Repo, s.Store, r)
	view := newView()
	defer view.Close()
	for ctx.Err() == nil {
		if err := refresh(ctx, s, said, view); err != nil {
			if ctx.Err() != nil {
				return nil // what was interrupted in the middle
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

// refresh looks up the status and shows it, with the messages there are, once.
func refresh(ctx context.Context, s *session.Session, said *bytes.Buffer, v *ui.View) error {
	said.Reset()
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	status, err := s.Status(ctx, r)
	if err != nil {
		return err
	}
	return v.Show(documentOf(s.Config, status), said.String())
}
