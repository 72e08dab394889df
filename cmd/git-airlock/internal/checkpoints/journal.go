package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// journal describes a restore. It exists from before the first change of the workspace until the processes in the prison go on. Only a
// process that holds the store's lock writes it. A process that takes the lock and finds a journal finishes that restore, because the
// process that began it was killed.
type journal struct {
	To      int      `json:"to"`     // the checkpoint to restore
	Before  int      `json:"before"` // the checkpoint of the state before
	Scope   [][]byte `json:"scope"`
	KeepNew bool     `json:"keep_new"`
	Phase   phase    `json:"phase"`
}

// phase is how far a restore has come.
type phase int

const (
	planned  phase = iota // nothing was changed yet; the processes may be frozen
	changing              // the workspace may have files of both states
	restored              // the files are restored; the processes may still be frozen
)

func (j journal) options() checkpoint.RestoreOptions {
	return checkpoint.RestoreOptions{Scope: resident.Texts(j.Scope), KeepNew: j.KeepNew}
}

func (k Keeper) journalFile() string {
	return filepath.Join(k.Prisons.Store.Dir(k.Record.ID), airlock.RestoreFile)
}

func (k Keeper) write(j journal) error {
	return durable.WriteJSON(k.journalFile(), j)
}

// finished removes the journal.
func (k Keeper) finished() error {
	return gitops.Unless(os.Remove(k.journalFile()), fs.ErrNotExist)
}

const (
	// finishPatience is how long a command waits for another one that may be restoring.
	finishPatience = time.Second
	// finishPoll is how often the daemon looks for a journal, and finishAgain how long it waits after it could not finish a restore.
	finishPoll  = time.Second
	finishAgain = 10 * time.Second
)

// Attend finishes restores whose processes were killed, until ctx ends.
func (k Keeper) Attend(ctx context.Context) {
	tick := time.NewTicker(finishPoll)
	defer tick.Stop()
	for {
		pause := finishPoll
		if err := k.Finish(ctx); err != nil && ctx.Err() == nil {
			k.Prisons.Report.Say("%s", gitops.Text(err.Error()))
			pause = finishAgain
		}
		tick.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Finish finishes a restore whose process was killed, if there is one, and lets the frozen processes go on. If there is
// none, it only calls stat(2).
func (k Keeper) Finish(ctx context.Context) error {
	if !k.Prisons.Store.Restoring(k.Record.ID) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	unlock, err := k.Prisons.Store.Lock(bounded)
	if err != nil {
		return gitops.Unless(err, airlock.ErrBusy) // the process with the lock is restoring, or will look for the journal itself
	}
	defer unlock()
	if err = k.finish(ctx); err != nil {
		return fmt.Errorf("finish a restore that was interrupted: %w", err)
	}
	return nil
}

func (k Keeper) finish(ctx context.Context) error {
	var j journal
	found, err := durable.ReadJSON(k.journalFile(), &j)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if !found {
		return nil
	}
	if k.Prisons.Store.WorkspaceGone(k.Record) {
		return k.finished()
	}
	runs, err := k.Prisons.Answers(ctx, k.Record)
	if err != nil {
		return err
	}
	return k.keepStill(ctx, runs, Restore{Number: j.To, Scope: resident.Texts(j.Scope), KeepNew: j.KeepNew}, func(w *still) error {
		if j.Phase != changing {
			return nil
		}
		w.half = true
		err := k.through(w.ctx, w.open, func(s *checkpoint.Store, c *files.Client) error { return k.again(w, s, c, j) })
		if errors.Is(err, checkpoint.ErrNoCheckpoint) { // another try would fail, too
			w.half = false
		}
		return err
	})
}

// again makes the changes of an interrupted restore. It makes no checkpoint of the state before, because the restore has made one.
func (k Keeper) again(w *still, s *checkpoint.Store, c *files.Client, j journal) error {
	before, err := s.Find(j.Before)
	if err != nil {
		return err
	}
	to, err := s.Find(j.To)
	if err != nil {
		return err
	}
	plan, err := s.PlanAgain(w.ctx, c, before, to, j.options())
	if err != nil {
		return err
	}
	killpoint.Reach("restore-again")
	if err := k.act(w, s, c, plan, j); err != nil {
		return err
	}
	k.Prisons.Report.Say("the restore of checkpoint %d was interrupted, and is finished now", j.To)
	k.Prisons.Report.Hint(Command(j.Before, true) + "  # undoes it") // the command that finishes it may start the prison
	return nil
}
