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
	s, err := openAs(c, said)
	if err != nil {
		return err
	}
	r, err := s.Here(ctx)
	if err != nil {
		return err
	}
	changes := daemon.Watch(ctx, s.Repo, s.Store, r)
	view := ui.NewView(c.App.Writer, c.App.ErrWriter, Painted(s))
	defer view.Close()
	for ctx.Err() == nil {
		said.Reset()
		d, err := read(ctx, s)
		if err == nil {
			err = view.Show(d, said.String())
		}
		if err != nil && ctx.Err() != nil {
			break // the error is only the interruption
		}
		if err != nil {
			return err
		}
		untilChange(ctx, changes, view)
	}
	if errors.Is(context.Cause(ctx), ErrUnread) {
		return Shown(ErrUnread)
	}
	return nil
}

// untilChange waits until the status may have changed, or ctx ends. It draws the passing time meanwhile.
func untilChange(ctx context.Context, changes <-chan struct{}, view *ui.View) {
	poll := time.After(watchPoll)
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll:
			return
		case <-changes:
			time.Sleep(watchPause)
			return
		case <-view.Tick:
			view.Draw()
		}
	}
}
