package inbound

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

const (
	// grace is the time that git in the workspace has to end its work after the user has interrupted the sync, or another command needs the
	// airlock. It is enough for most syncs.
	grace = time.Second
	// closeTime bounds taking back a sync that was ended. It takes milliseconds, unless files have changed already.
	closeTime = 3 * time.Second
)

// brokenOff is the error of a sync whose git in the workspace was ended. The agent decides how long that git takes.
type brokenOff struct {
	cause error
	limit time.Duration  // of that git
	waits *inner.Invalid // for what git seems to have waited, or nil
	open  bool           // files have changed already, so that the sync must be finished
}

func (e *brokenOff) Error() string {
	switch {
	case e.waits != nil:
		return e.waits.Reason
	case errors.Is(e.cause, context.DeadlineExceeded):
		return fmt.Sprintf("git in the workspace did not end within %s", e.limit)
	}
	return e.cause.Error()
}

func (e *brokenOff) Unwrap() error { return e.cause }

// ended returns the cause instead of err if the context has ended because another command needs the airlock.
func ended(ctx context.Context, err error) error {
	var broken *brokenOff
	var refused *inner.Refused
	if err == nil || errors.As(err, &broken) || errors.As(err, &refused) || !errors.Is(context.Cause(ctx), airlock.ErrWanted) {
		return err
	}
	return airlock.ErrWanted
}

// moveMain moves the inner main to a commit within a limit of time, and completes the record. If ctx ends, git has a moment to end its work,
// because a move that ends halfway leaves the agent with neither state.
func moveMain(ctx context.Context, w inner.Workspace, dir string, made incoming.Made, limit time.Duration) error {
	bounded, end := lasting(ctx, limit)
	defer end()
	pack, err := os.Open(made.Pack)
	if err == nil {
		err = errors.Join(w.Unpack(bounded, pack), pack.Close())
	}
	if err != nil {
		return errors.Join(endOf(ctx, bounded, w, err, limit), incoming.Close(dir, false))
	}
	err = w.Advance(bounded, made.From, made.To)
	if _, refused := errors.AsType[*inner.Refused](err); err == nil || refused {
		return errors.Join(err, incoming.Close(dir, err == nil))
	}
	if err = endOf(ctx, bounded, w, err, limit); bounded.Err() == nil {
		return err
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	has, unfinished := finish(soon, w, dir)
	if broken, ok := errors.AsType[*brokenOff](err); ok {
		broken.open = unfinished != nil
	}
	if has {
		return nil
	}
	return err
}

// lasting returns a context that ends after a limit of time, or a moment after ctx.
func lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return long, func() { stop(); cancel() }
}

// endOf returns a [brokenOff] instead of the error of git if bounded, which depends on ctx, has ended.
func endOf(ctx, bounded context.Context, w inner.Workspace, err error, limit time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return &brokenOff{cause: context.Cause(ctx), limit: limit}
	case bounded.Err() != nil:
		return &brokenOff{cause: bounded.Err(), limit: limit, waits: w.Waits(ctx)}
	}
	return err
}

func finishWithin(ctx context.Context, w inner.Workspace, dir string, limit time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := finish(bounded, w, dir)
	err = endOf(ctx, bounded, w, err, limit)
	if broken, ok := errors.AsType[*brokenOff](err); ok {
		broken.open = true
	}
	return err
}

// finish completes a sync that was interrupted, or takes it back. has reports that the agent has the commit. The caller holds the store's
// lock, so that no sync runs. It does nothing while the agent's git changes the index.
func finish(ctx context.Context, w inner.Workspace, dir string) (has bool, err error) {
	record, err := ledger.ReadSynced(dir)
	open := record.Open()
	if err != nil || open == nil {
		return false, err
	}
	err = w.Finish(ctx, open.Onto, open.Pair.Inner)
	var refused *inner.Refused
	switch {
	case err == nil:
		return true, incoming.Close(dir, true)
	case errors.As(err, &refused) && refused.Obstacle != inner.Locked:
		return false, incoming.Close(dir, false)
	}
	return false, err
}

// interrupted returns the error for the user about a sync whose git in the workspace was ended.
func (q Request) interrupted(e *brokenOff) error {
	state := "nothing was changed"
	if e.open {
		state = "the sync is not finished, and the daemon tries again"
	}
	next := []string{"git airlock sync"}
	switch {
	case e.waits != nil:
		next = append(hold.InnerInvalid(e.waits).Next, next...)
	case errors.Is(e, context.DeadlineExceeded):
		next = append([]string{"git airlock visit -- git config --get-regexp '^filter[.]'  # a filter that does not end?"}, next...)
	case !errors.Is(e, airlock.ErrWanted): // the user's signal
		if e.open {
			q.Prisons.Report.Say("%s", state)
		}
		return e.cause
	}
	return &environment.Refusal{Text: e.Error() + "; " + state, Next: next}
}
