// Package checkpoints makes, compares and restores checkpoints of an airlock's workspace. Package snapshot/checkpoint stores them.
package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Keeper keeps the checkpoints of one airlock. A call waits until calls for the same airlock have ended, in other processes too.
type Keeper struct {
	Prisons prisons.Prisons
	Record  airlock.Record
	Now     func() time.Time
}

const lockName = "checkpoints.lock"

func (k Keeper) dir() string { return filepath.Join(k.Prisons.Store.Dir(k.Record.ID), "checkpoints") }

// config returns the settings with those that the airlock keeps.
func (k Keeper) config() gitops.Config { return k.Prisons.Config.With(k.Record.Settings) }

// Most reads the number of bytes that the store may use.
func Most(c gitops.Config) (int64, error) {
	return policy.ReadSize(c, "airlock.checkpoint.max", checkpoint.DefaultBytes)
}

// CheckTake returns an error if a checkpoint would fail because of a setting, or because there is no workspace.
func (k Keeper) CheckTake() error {
	_, err := Most(k.config())
	return errors.Join(err, k.checkWorkspace())
}

// checkWorkspace returns an [environment.Refusal] if there is no workspace.
func (k Keeper) checkWorkspace() error {
	if k.Prisons.Store.WorkspaceGone(k.Record) {
		return &environment.Refusal{Text: "the workspace " + k.Record.Workspace + " is gone", Next: []string{"git airlock start  # makes it again"}}
	}
	return nil
}

// with locks and opens the store, and calls act with it.
func (k Keeper) with(ctx context.Context, act func(*checkpoint.Store) error) error {
	most, err := Most(k.config())
	if err != nil {
		return err
	}
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, lockName)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := checkpoint.OpenStore(k.dir(), most)
	if err != nil {
		return fmt.Errorf("open the checkpoints: %w", err)
	}
	return advise(errors.Join(act(s), s.Close()))
}

// inside calls act with the store and with the workspace's files, which act may change if writes is true.
func (k Keeper) inside(ctx context.Context, writes bool, act func(*checkpoint.Store, *files.Client) error) error {
	return k.through(ctx, func() (prisons.Files, error) { return k.Prisons.OpenFiles(ctx, k.Record, writes) }, act)
}

// through calls act with the store and with files that open returns.
func (k Keeper) through(ctx context.Context, open func() (prisons.Files, error), act func(*checkpoint.Store, *files.Client) error) error {
	return k.with(ctx, func(s *checkpoint.Store) error {
		f, err := open()
		if err != nil {
			return err
		}
		if err := act(s, f.Client); err != nil {
			f.Close() // the process inside ended because of the first error
			return err
		}
		return f.Close()
	})
}

// Take makes a checkpoint of the present state. If whole is true, it looks at every file, also in folders in which no change was
// reported.
func (k Keeper) Take(ctx context.Context, message string, whole bool) (checkpoint.Taken, error) {
	t, err := k.take(ctx, resident.Request{Message: []byte(message), Whole: whole})
	if err == nil {
		k.note("checkpoint %d was made", t.Number)
	}
	return t, err
}

// take makes a checkpoint in the daemon, or in this process if that is not possible.
func (k Keeper) take(ctx context.Context, q resident.Request) (t checkpoint.Taken, err error) {
	if q.Most, err = Most(k.config()); err != nil {
		return t, err
	}
	if err = k.checkWorkspace(); err != nil { // without a reported change, the daemon would take the last state for the present one
		return t, err
	}
	if a, err := resident.Ask(ctx, k.Prisons.Store.Dir(k.Record.ID), q); err == nil {
		k.sayRemoved(a.Removed)
		return a.Taken(), nil
	} else if ctx.Err() != nil {
		return t, ctx.Err()
	}
	begun := k.Now()
	ctx, cancel := context.WithTimeout(ctx, serveTime)
	defer cancel()
	err = k.inside(ctx, false, func(s *checkpoint.Store, c *files.Client) error {
		if t, err = s.Take(ctx, c, checkpoint.Options{Message: textOf(q), Now: k.Now(), OnlyNew: q.OnlyNew}); err != nil {
			return err
		}
		t.Took = k.Now().Sub(begun)
		return k.trim(s)
	})
	return t, err
}

// note writes an event about a checkpoint to the event log.
func (k Keeper) note(text string, number int) {
	events.Note(k.Prisons.Store.Dir(k.Record.ID), k.Record.Session, record.EventCheckpoint, fmt.Sprintf(text, number))
}

// trim removes the oldest checkpoints beyond the caps.
func (k Keeper) trim(s *checkpoint.Store) error {
	removed, err := s.Trim()
	k.noteRemoved(removed)
	k.sayRemoved(removed)
	return err
}

// noteRemoved writes an event about removed checkpoints, which the process that removes them does.
func (k Keeper) noteRemoved(removed int) {
	if removed > 0 {
		k.note("the oldest checkpoints were removed: %d", removed)
	}
}

func (k Keeper) sayRemoved(removed int) {
	if removed > 0 {
		k.Prisons.Report.Say("removed the oldest checkpoints, %d of them: at most %d are kept, in the bytes of airlock.checkpoint.max", removed, checkpoint.MostCheckpoints)
	}
}

// List returns all checkpoints, oldest first, and the bytes that they use.
func (k Keeper) List(ctx context.Context) (all []checkpoint.Checkpoint, bytes int64, err error) {
	if _, err := os.Lstat(k.dir()); err != nil {
		return nil, 0, nil //nolint:nilerr // there are none
	}
	err = k.with(ctx, func(s *checkpoint.Store) error {
		all, err = s.List()
		bytes = s.Size()
		return err
	})
	return all, bytes, err
}

// CheckNumber returns an error if no checkpoint has the number.
func (k Keeper) CheckNumber(ctx context.Context, number int) error {
	return k.with(ctx, func(s *checkpoint.Store) error {
		_, err := s.Find(number)
		return err
	})
}

// Show returns a checkpoint and its files.
func (k Keeper) Show(ctx context.Context, number int, scope checkpoint.Scope) (c checkpoint.Checkpoint, all []checkpoint.Change, err error) {
	err = k.with(ctx, func(s *checkpoint.Store) error {
		if c, err = s.Find(number); err != nil {
			return err
		}
		state, err := s.State(c)
		if err == nil {
			all = checkpoint.Compare(checkpoint.State{}, state, scope)
		}
		return err
	})
	return c, all, err
}

// Diff returns the differences between two checkpoints, or between a checkpoint and the present state if to is 0.
func (k Keeper) Diff(ctx context.Context, from, to int, scope checkpoint.Scope) (all []checkpoint.Change, err error) {
	var before, then checkpoint.State
	if to > 0 {
		err = k.with(ctx, func(s *checkpoint.Store) error {
			if before, err = stateOf(s, from); err == nil {
				then, err = stateOf(s, to)
			}
			return err
		})
	} else {
		before, then, err = k.states(ctx, from, false)
	}
	if err != nil {
		return nil, err // there are no states to compare
	}
	return checkpoint.Compare(before, then, scope), nil
}

// states returns the state of a checkpoint and the present one. With opens it reads files that are closed to their owner, too.
func (k Keeper) states(ctx context.Context, number int, opens bool) (saved, now checkpoint.State, err error) {
	err = k.inside(ctx, opens, func(s *checkpoint.Store, c *files.Client) error {
		if saved, err = stateOf(s, number); err == nil {
			now, err = s.Present(ctx, c, opens)
		}
		return err
	})
	return saved, now, err
}

func stateOf(s *checkpoint.Store, number int) (checkpoint.State, error) {
	c, err := s.Find(number)
	if err != nil {
		return checkpoint.State{}, err
	}
	return s.State(c)
}
