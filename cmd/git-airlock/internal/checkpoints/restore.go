package checkpoints

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Restore is a request to restore a checkpoint.
type Restore struct {
	Number  int
	Scope   checkpoint.Scope // the files to restore
	KeepNew bool             // files that the checkpoint does not have stay
	// Show gets the paths that will be written and removed, before anything is changed. Its error ends the restore.
	Show func(write, remove []string) error
}

// Restore restores a checkpoint, and returns the checkpoint of the state before. An [environment.Refusal] reports that the prison
// runs.
func (k Keeper) Restore(ctx context.Context, o Restore) (before checkpoint.Checkpoint, err error) {
	unlock, err := k.Prisons.Store.Lock(ctx)
	if err != nil {
		return before, err
	}
	defer unlock()
	if err := k.idle(ctx, o.Number); err != nil {
		return before, err
	}
	toTheEnd := context.WithoutCancel(ctx) // half a restore is neither state
	return before, k.inside(toTheEnd, true, func(s *checkpoint.Store, c *files.Client) error {
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
		done, err := s.Restore(toTheEnd, c, plan)
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

// idle returns an [environment.Refusal] if something could change the workspace, or if there is none.
func (k Keeper) idle(ctx context.Context, number int) error {
	if k.Prisons.Store.WorkspaceGone(k.Record) {
		return &environment.Refusal{Text: "the workspace " + k.Record.Workspace + " is gone", Next: []string{"git airlock start  # makes it again"}}
	}
	runs, err := k.Prisons.Answers(ctx, k.Record)
	if err == nil && runs {
		err = &environment.Refusal{Text: "the prison runs, and its processes could change the workspace meanwhile",
			Next: []string{fmt.Sprintf("git airlock checkpoint restore --stop %d", number)}}
	}
	return err
}
