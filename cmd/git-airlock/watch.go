package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/promote/daemon"
)

const (
	// watchPoll is how often the status is looked up whatever the signs of a change say: what the agent has not
	// committed gives none.
	watchPoll = 2 * time.Second
	// watchPause keeps a burst of changes from being looked at one by one.
	watchPause = 200 * time.Millisecond
)

// errUnread says that nobody reads what a command says: it ends as the signal would have it end.
const errUnread = childStatus(128 + int(syscall.SIGPIPE))

// watch shows the status again whenever it changes, until it is interrupted, nobody reads it or the airlock is gone.
func (a *app) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if ui.UntilUnread(os.Stdout) { // where nothing changes, no write would tell
			cancel(errUnread)
		}
	}()
	err := a.watchWhile(ctx)
	if err == nil && errors.Is(context.Cause(ctx), errUnread) {
		return errUnread
	}
	return err
}

// watchWhile watches until ctx ends or the airlock is gone.
func (a *app) watchWhile(ctx context.Context) error {
	r, err := a.here(ctx)
	if err != nil {
		return err
	}
	changes := daemon.Watch(ctx, a.repo, a.store, r)
	view := ui.NewView(a.out, a.message, ui.Paint(ui.WantsColour(a.config, ui.Stdout, "color.airlock", "color.ui")))
	defer view.Close()
	for ctx.Err() == nil {
		if err := a.look(ctx, view); err != nil {
			if ctx.Err() != nil {
				return nil // what was interrupted in the middle of a look
			}
			return err
		}
		poll := time.After(watchPoll)
		for looked := false; !looked; {
			select {
			case <-ctx.Done():
				return nil
			case <-poll:
				looked = true
			case <-changes:
				time.Sleep(watchPause)
				looked = true
			case <-view.Tick:
				view.Draw()
			}
		}
	}
	return nil
}

// look looks up the status and shows it. What there is to say besides is shown with it, once.
func (a *app) look(ctx context.Context, v *ui.View) error {
	there, said := *a, &bytes.Buffer{}
	there.message = said
	r, err := there.here(ctx)
	if err != nil {
		return err
	}
	d, err := there.document(ctx, r)
	if err != nil {
		return err
	}
	return v.Show(d, said.String())
}
