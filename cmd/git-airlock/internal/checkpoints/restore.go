package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
	"github.com/git-airlock/git-airlock/words"
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

// Command returns the command that restores a checkpoint as a whole. With freeze it works while the prison runs, too.
func Command(number int, freeze bool) string {
	return Restore{Number: number, Freeze: freeze}.command()
}

// command returns the command that makes the restore.
func (o Restore) command() string {
	if o.Freeze {
		return o.with(" --freeze")
	}
	return o.with("")
}

// stopping returns the command that makes the restore after it has stopped the prison.
func (o Restore) stopping() string { return o.with(" --stop") }

// freezing returns the command that makes the restore while the processes of the prison are frozen.
func (o Restore) freezing() string { return o.with(" --freeze") }

// with returns the command that makes the restore with another option.
func (o Restore) with(option string) string {
	var kept, scope strings.Builder
	if o.KeepNew {
		kept.WriteString(" --keep-new")
	}
	for i, path := range o.Scope {
		if i == 0 {
			scope.WriteString(" --")
		}
		scope.WriteString(" " + gitops.Pasteable(path))
	}
	return fmt.Sprintf("git airlock checkpoint restore%s%s %d%s", option, kept.String(), o.Number, scope.String())
}

// Restore restores a checkpoint, and returns the checkpoint of the state before. An [environment.Refusal] reports that the prison
// runs, or cannot be frozen.
func (k Keeper) Restore(ctx context.Context, o Restore) (before checkpoint.Checkpoint, err error) {
	unlock, err := k.Prisons.Store.Lock(ctx)
	if err != nil {
		return before, err
	}
	defer unlock()
	runs, err := k.checkIdle(ctx, o)
	if err == nil {
		err = k.Check(ctx, o, runs)
	}
	if err != nil {
		return before, err
	}
	return before, k.keepStill(ctx, runs, o, func(w *still) error {
		killpoint.Reach("restore-frozen")
		return k.through(w.ctx, w.open, func(s *checkpoint.Store, c *files.Client) error {
			plan, err := k.plan(ctx, s, c, o)
			if err != nil {
				return err
			}
			before = plan.Before.Checkpoint
			return k.act(w, s, c, plan, journal{To: o.Number, Before: before.Number, Scope: resident.Bytes(o.Scope), KeepNew: o.KeepNew})
		})
	})
}

// Check returns an error if there is no checkpoint with the number, or if the checkpoint and the workspace both lack a path of the scope. runs
// reports that the prison may run. Files that are closed to their owner are not opened then, and what is below them is not known.
func (k Keeper) Check(ctx context.Context, o Restore, runs bool) error {
	var saved, now checkpoint.State
	err := k.with(ctx, func(s *checkpoint.Store) (err error) {
		saved, err = stateOf(s, o.Number)
		return err
	})
	if err != nil || len(o.Scope.Missing(saved, now)) == 0 {
		return err
	}
	_, now, err = k.states(ctx, o.Number, !runs)
	refused := new(checkpoint.Unreadable)
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	return o.missing(slices.DeleteFunc(o.Scope.Missing(saved, now), refused.Hides))
}

// missing returns an error that names paths, unless there are none.
func (o Restore) missing(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return fmt.Errorf("neither checkpoint %d nor the workspace has %s", o.Number, Paths(paths))
}

// Paths names the paths of a scope for people.
func Paths(scope checkpoint.Scope) string { return words.List(gitops.Escaped(scope), 10) }

// Foretell shows the plan of a restore, for which it does not freeze or stop a prison. stop reports that the restore would stop it first.
func (k Keeper) Foretell(ctx context.Context, o Restore, stop bool) error {
	unlock, err := k.Prisons.Store.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	asked := o
	asked.Freeze = o.Freeze || stop
	runs, err := k.checkIdle(ctx, asked)
	if err == nil {
		err = k.Check(ctx, o, runs)
	}
	if err != nil {
		return err
	}
	var plan *checkpoint.Restoring
	err = k.inside(ctx, !runs, func(s *checkpoint.Store, c *files.Client) error {
		saved, err := stateOf(s, o.Number)
		if err != nil {
			return err
		}
		now, err := s.Present(ctx, c, !runs)
		if refused, ok := errors.AsType[*checkpoint.Unreadable](err); ok {
			k.Prisons.Report.Say("the restore can also write or remove what the dry run does not see: %s", gitops.Text(refused.Error()))
		} else if err != nil {
			return err
		}
		plan, err = s.Foresee(saved, now, o.options())
		return err
	})
	if err != nil {
		return err
	}
	if err = o.removesNew(plan, stop); err != nil {
		return err
	}
	return o.Show(plan.Write, plan.Remove)
}

func (o Restore) options() checkpoint.RestoreOptions {
	return checkpoint.RestoreOptions{Scope: o.Scope, KeepNew: o.KeepNew}
}

// removesNew returns a refusal if a plan removes new files that must be kept. stop reports that the restore would stop the prison first.
func (o Restore) removesNew(plan *checkpoint.Restoring, stop bool) error {
	if len(plan.New) == 0 {
		return nil
	}
	o.KeepNew = false
	again := o.command()
	if stop {
		again = o.stopping()
	}
	return &environment.Refusal{Text: fmt.Sprintf("checkpoint %d has a file in the place of a folder with new files: %s", o.Number, Paths(plan.New)),
		Next: []string{again + "  # removes them, and the checkpoint that it makes before has them"}}
}

func (k Keeper) plan(ctx context.Context, s *checkpoint.Store, c *files.Client, o Restore) (*checkpoint.Restoring, error) {
	to, err := s.Find(o.Number)
	if err != nil {
		return nil, err
	}
	options := o.options()
	options.Options = checkpoint.Options{Message: fmt.Sprintf("before the restore of %d", o.Number), Now: k.Now(), Opens: true}
	plan, err := s.Plan(ctx, c, to, options)
	if err != nil {
		return nil, err
	}
	if err = errors.Join(o.missing(plan.Missing), o.removesNew(plan, false)); err == nil {
		err = errors.Join(o.Show(plan.Write, plan.Remove), ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(err, plan.Cancel(c))
	}
	return plan, nil
}

// act makes the planned changes. After the first change, nothing in the prison runs until the restore has ended, even if another process
// has to end it.
func (k Keeper) act(w *still, s *checkpoint.Store, c *files.Client, plan *checkpoint.Restoring, j journal) error {
	if err := errors.Join(k.write(j), w.hold()); err != nil {
		return errors.Join(err, plan.Cancel(c))
	}
	j.Phase = changing
	if err := k.write(j); err != nil {
		return errors.Join(err, plan.Cancel(c))
	}
	killpoint.Reach("restore-changing")
	w.half = true
	plan.Step = func(n int) { killpoint.Reach(fmt.Sprintf("restore-write-%d", n)) }
	done, err := s.Restore(w.ctx, c, plan)
	killpoint.Reach("restore-done")
	w.half = err != nil && !errors.Is(err, checkpoint.ErrDiffers)
	for _, failed := range done.Failed {
		k.Prisons.Report.Say("not restored: %s", failed)
	}
	j.Phase = restored
	if err = errors.Join(err, k.write(j)); err != nil {
		return environment.Advise(err, Command(j.Before, w.frozen != nil)+"  # the state before")
	}
	killpoint.Reach("restore-restored")
	k.note("checkpoint %d was restored", j.To)
	return k.trim(s)
}

// still is a workspace that no process of the agent can change.
type still struct {
	ctx    context.Context // never canceled: half a restore is neither state
	frozen prison.Frozen   // nil if the prison does not run
	open   func() (prisons.Files, error)
	half   bool // set while the workspace has files of both states, and another try may mend that
}

func (w *still) hold() error {
	killpoint.Reach("restore-planned")
	if w.frozen == nil {
		return nil
	}
	defer killpoint.Reach("restore-held")
	return w.frozen.Hold()
}

// keepStill calls act while nothing in the prison runs. Afterwards it lets the processes go on and removes the journal. If act has
// restored only a part of the files, the processes stay frozen, and the journal stays for the next process that looks for it.
func (k Keeper) keepStill(ctx context.Context, runs bool, o Restore, act func(*still) error) error {
	w := &still{ctx: context.WithoutCancel(ctx)}
	w.open = func() (prisons.Files, error) { return k.openToWrite(ctx, runs) }
	if runs {
		frozen, unlock, err := k.freeze(ctx, o)
		if err != nil {
			return err
		}
		defer unlock()
		w.frozen = frozen
	}
	err := act(w)
	if w.half {
		return errors.Join(err, w.leave())
	}
	thawed := w.thaw()
	killpoint.Reach("restore-thawed")
	switch {
	case errors.Is(thawed, prison.ErrMoved):
		thawed = errors.Join(k.finished(), environment.Advise(fmt.Errorf("restored, but the state before may be lost in part: %w", thawed), o.stopping()))
	case thawed == nil:
		thawed = k.finished()
	}
	if errors.Is(err, prison.ErrMoved) { // nothing was changed
		return errors.Join(o.cannotFreeze(err), thawed)
	}
	return errors.Join(err, thawed)
}

// openToWrite opens the files of a workspace that no process changes. The end of ctx ends the wait for the process inside, which a prison
// that does not answer never starts. Later it does not end that process: half a restore is neither state.
func (k Keeper) openToWrite(ctx context.Context, runs bool) (f prisons.Files, err error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, end)()
	if runs {
		f, err = k.Prisons.OpenFrozenFiles(life, k.Record)
	} else {
		f, err = k.Prisons.OpenFiles(life, k.Record, true)
	}
	if err != nil {
		return f, err
	}
	if err = f.Ready(); err != nil {
		f.Close() // the process inside ended because of the first error
	}
	return f, err
}

// cannotFreeze returns the refusal of a restore that needs a prison without processes.
func (o Restore) cannotFreeze(err error) error {
	return &environment.Refusal{Text: "the prison cannot be frozen: " + gitops.Text(err.Error()).String(), Next: []string{o.stopping()}}
}

func (w *still) thaw() error {
	if w.frozen == nil {
		return nil
	}
	return w.frozen.Thaw()
}

func (w *still) leave() error {
	if w.frozen == nil {
		return nil
	}
	return w.frozen.Leave()
}

// checkIdle returns an [environment.Refusal] if there is no workspace, or if the prison runs and o.Freeze is not set, because processes
// could then change the workspace. It reports whether the prison runs.
func (k Keeper) checkIdle(ctx context.Context, o Restore) (runs bool, err error) {
	if err = k.checkWorkspace(); err != nil {
		return false, err
	}
	runs, err = k.Prisons.Answers(ctx, k.Record)
	if err == nil && runs && !o.Freeze {
		err = &environment.Refusal{Text: "the prison runs, and its processes could change the workspace meanwhile",
			Next: []string{o.stopping(), o.freezing()}}
	}
	return runs, err
}

// freeze stops all processes in the prison. Until the caller calls unlock, no promotion reads the workspace, so none sees half of a
// restore.
func (k Keeper) freeze(ctx context.Context, o Restore) (frozen prison.Frozen, unlock func(), err error) {
	if unlock, err = k.Prisons.Store.LockFile(ctx, k.Record.ID, promote.CycleLock); err != nil {
		return nil, nil, err
	}
	if frozen, err = k.Prisons.Freeze(ctx, k.Record); err == nil {
		return frozen, unlock, nil
	}
	unlock()
	if ctx.Err() != nil {
		return nil, nil, err
	}
	return nil, nil, o.cannotFreeze(err)
}
