package checkpoints

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/record/store"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Restore is a request to restore a checkpoint.
type Restore struct {
	Number  int
	Scope   checkpoint.Scope // the files to restore
	KeepNew bool             // files that the checkpoint does not have stay
	Freeze  bool             // stop the processes of a running prison meanwhile, and let them go on afterwards
	// Show gets the paths that will be written and removed, before anything is changed. Its error ends the restore.
	Show func(write, remove []string) error
}

// Restore restores a checkpoint, and returns the checkpoint of the state before. An [environment.Refusal] reports that the prison
// runs, or cannot be frozen.
func (k Keeper) Restore(ctx context.Context, o Restore) (before checkpoint.Checkpoint, err error) {
	unlock, err := k.Prisons.Store.Lock(ctx)
	if err != nil {
		return before, err
	}
	defer unlock()
	toTheEnd := context.WithoutCancel(ctx) // half a restore is neither state
	open := func() (prisons.Files, error) { return k.Prisons.OpenFiles(toTheEnd, k.Record, true) }
	runs, err := k.idle(ctx, o)
	if err != nil {
		return before, err
	}
	if runs {
		var thaw func() error
		if thaw, err = k.freeze(ctx, o.Number); err != nil {
			return before, err
		}
		defer func() { err = errors.Join(err, thaw()) }()
		store.StopAt("restore-frozen")
		open = func() (prisons.Files, error) { return k.Prisons.OpenFrozenFiles(toTheEnd, k.Record) }
	}
	return before, k.through(toTheEnd, open, func(s *checkpoint.Store, c *files.Client) error {
		to, err := s.Find(o.Number)
		if err != nil {
			return err
		}
		plan, err := s.Plan(ctx, c, to, checkpoint.RestoreOptions{
			Options: checkpoint.Options{Message: fmt.Sprintf("before the restore of %d", o.Number), Now: k.Now(), Opens: true},
			Scope:   o.Scope, KeepNew: o.KeepNew,
		})
		if err != nil {
			return err
		}
		before = plan.Before.Checkpoint
		if err := errors.Join(o.Show(plan.Write, plan.Remove), ctx.Err()); err != nil {
			return errors.Join(err, plan.Cancel(c))
		}
		if err := k.begin(unfinished{To: o.Number, Before: before.Number}); err != nil {
			return errors.Join(err, plan.Cancel(c))
		}
		store.StopAt("restore-planned")
		done, err := s.Restore(toTheEnd, c, plan)
		err = errors.Join(err, k.finished())
		store.StopAt("restore-restored")
		for _, failed := range done.Failed {
			k.Prisons.Report.Say("not restored: %s", failed)
		}
		if err != nil {
			return environment.Advise(err, fmt.Sprintf("git airlock checkpoint restore %d  # the state before", before.Number))
		}
		k.note("checkpoint %d was restored", o.Number)
		return k.trim(s)
	})
}

// idle returns an [environment.Refusal] if something could change the workspace, or if there is none. It reports whether the prison
// runs. With o.Freeze it does not refuse because the prison runs.
func (k Keeper) idle(ctx context.Context, o Restore) (runs bool, err error) {
	if k.Prisons.Store.WorkspaceGone(k.Record) {
		return false, &environment.Refusal{Text: "the workspace " + k.Record.Workspace + " is gone", Next: []string{"git airlock start  # makes it again"}}
	}
	runs, err = k.Prisons.Answers(ctx, k.Record)
	if err == nil && runs && !o.Freeze {
		err = &environment.Refusal{Text: "the prison runs, and its processes could change the workspace meanwhile",
			Next: []string{fmt.Sprintf("git airlock checkpoint restore --stop %d", o.Number), fmt.Sprintf("git airlock checkpoint restore --freeze %d", o.Number)}}
	}
	return runs, err
}

// freeze stops all processes in the prison. No promotion reads the workspace meanwhile, so that none sees half of a restore.
func (k Keeper) freeze(ctx context.Context, number int) (thaw func() error, err error) {
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, promote.CycleLock)
	if err != nil {
		return nil, err
	}
	frozen, err := k.Prisons.Freeze(ctx, k.Record)
	if err != nil {
		unlock()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &environment.Refusal{Text: "the prison cannot be frozen: " + gitops.Text(err.Error()).String(),
			Next: []string{fmt.Sprintf("git airlock checkpoint restore --stop %d", number)}}
	}
	return func() error { defer unlock(); return frozen() }, nil
}
