package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/launched"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
)

// settleTime is how long after the end of a launched run its record is made, because the daemon may still land commits of the run. If a
// cycle runs then, the record is made after the cycle.
const settleTime = 2 * time.Second

// End records a run that this process has begun.
func (a *Active) End(ctx context.Context, result Result) error {
	k := a.keeper
	defer a.release()
	if result.At.IsZero() {
		result.At = k.Now().UTC()
	}
	if err := k.ended(a.slot, result); err != nil {
		return err
	}
	killpoint.Reach("ended")
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, recordsLock)
	if err != nil {
		return gitops.Unless(err, fs.ErrNotExist) // the airlock is cleared
	}
	defer unlock()
	return k.finish(ctx, a.slot, result)
}

// ended notes how a run ended, before its record is made.
func (k Keeper) ended(slot int, result Result) error {
	return durable.WriteJSON(filepath.Join(k.folder(slot), endName), result)
}

// FinishOver records the runs of this airlock that are over and that no process has recorded. now reports that nothing more lands, so that
// FinishOver need not wait. If there are no such runs, it only reads a folder.
func (k Keeper) FinishOver(ctx context.Context, now bool) error {
	if slots, err := k.open(); err != nil || len(slots) == 0 {
		return err
	}
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, recordsLock)
	if err != nil {
		return err
	}
	defer unlock()
	return k.finishOver(ctx, now)
}

func (k Keeper) finishOver(ctx context.Context, now bool) error {
	slots, err := k.open()
	if err != nil {
		return err
	}
	for _, slot := range slots {
		result, over, err := k.over(ctx, slot, now)
		if err == nil && over {
			err = k.finish(ctx, slot, result)
		}
		if err != nil {
			return fmt.Errorf("record a run: %w", err)
		}
	}
	return nil
}

// over reports whether a run has ended and its record can be made, and how the run ended.
func (k Keeper) over(ctx context.Context, slot int, now bool) (result Result, over bool, err error) {
	o, err := k.opening(slot)
	if errors.Is(err, fs.ErrNotExist) { // killed before it began
		return result, false, os.RemoveAll(k.folder(slot))
	}
	if err != nil {
		return result, false, err
	}
	known, err := durable.ReadJSON(filepath.Join(k.folder(slot), endName), &result)
	if err != nil {
		return result, false, err
	}
	if o.Manifest.Kind == record.Direct {
		return k.directOver(slot, result, known)
	}
	return k.launchedOver(ctx, slot, result, known, now)
}

// directOver implements over for a run that belongs to a process.
func (k Keeper) directOver(slot int, result Result, known bool) (Result, bool, error) {
	unlock, err := k.Prisons.Store.TryLockFile(k.Record.ID, owner(slot))
	if errors.Is(err, airlock.ErrBusy) {
		return result, false, nil
	}
	if err != nil {
		return result, false, err
	}
	unlock()
	if !known {
		result.Recovered, result.At = true, k.lastSign(slot)
	}
	return result, true, nil
}

// launchedOver implements over for the launched command.
func (k Keeper) launchedOver(ctx context.Context, slot int, result Result, known, now bool) (Result, bool, error) {
	if !known {
		if !now && k.busy() { // it may be about to launch, and the known state is that of the command before
			return result, false, nil
		}
		l, err := k.Prisons.Launched(ctx, k.Record)
		if err != nil || l != nil && !l.Exited {
			return result, false, err
		}
		if l != nil && l.Status == killed && !now && k.busy() {
			return result, false, nil
		}
		runs, err := k.Prisons.Runs(ctx, k.Record)
		if err != nil {
			return result, false, err
		}
		result.At, result.Stopped = k.Now().UTC(), !runs && (l == nil || l.Status == killed)
		if l != nil {
			note, _, err := launched.Read(k.dir())
			if err != nil {
				return result, false, err
			}
			result.Exit, result.Key = &l.Status, note.EndedBy(l.Status)
		}
		k.sample(ctx, slot) // a limit may have ended it since the last time
		if err := k.ended(slot, result); err != nil {
			return result, false, err
		}
		now = now || !runs
	}
	return result, now || k.Now().Sub(result.At) >= settleTime && !k.lands(), nil
}

// lands reports whether a promotion cycle runs.
func (k Keeper) lands() bool {
	return airlock.IsBusy(k.Prisons.Store.TryLockFile(k.Record.ID, promote.CycleLock))
}

// busy reports whether another command holds the lock. That command may be ending the prison. If the prison still runs at this moment, a
// process that it has ended would look as if it had failed by itself.
func (k Keeper) busy() bool { return airlock.IsBusy(k.Prisons.Store.TryLock()) }

// killed is the exit status of a command that SIGKILL ended.
const killed = 128 + 9

// lastSign returns the time of the last change in the folder of a run.
func (k Keeper) lastSign(slot int) time.Time {
	var last time.Time
	entries, _ := os.ReadDir(k.folder(slot))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.UTC()
}

func (k Keeper) opening(slot int) (o opening, err error) {
	found, err := durable.ReadJSON(filepath.Join(k.folder(slot), openName), &o)
	if err == nil && !found {
		err = fs.ErrNotExist
	}
	return o, err
}

// finish makes the record of a run, and removes its folder. It can be repeated: a record whose ref exists is not made again.
func (k Keeper) finish(ctx context.Context, slot int, result Result) error {
	done, err := k.made(ctx, slot)
	token, tokenErr := gitops.Token(k.dir())
	switch err = errors.Join(err, tokenErr); {
	case err != nil:
	case done:
		err = k.place(mark(token)).Release() // the process died before it
	default:
		err = k.make(ctx, slot, mark(token), result)
	}
	if err != nil {
		return err
	}
	killpoint.Reach("before-removal")
	return os.RemoveAll(k.folder(slot))
}

// place returns where records are stored.
func (k Keeper) place(mark string) store.Place {
	return store.Place{Repo: k.Prisons.Repo, Sharing: k.Prisons.Config.Sharing(), Mark: mark}
}

// made reports whether the record of a run exists under the number that was noted for it. Another run can have got that number, if this
// one's process died before it stored the record.
func (k Keeper) made(ctx context.Context, slot int) (bool, error) {
	var number int
	if found, err := durable.ReadJSON(filepath.Join(k.folder(slot), numberName), &number); err != nil || !found {
		return false, err
	}
	ref := record.Ref(k.Record.Session, number)
	at, err := k.Prisons.Repo.Ref(ctx, ref)
	if err != nil || at == "" {
		return false, err
	}
	o, err := k.opening(slot)
	if err != nil {
		return false, err
	}
	run, err := store.Load(ctx, k.Prisons.Repo, store.Entry{Ref: ref, Session: k.Record.Session, Number: number, Commit: at})
	return err == nil && run.Manifest.Started.Equal(o.Manifest.Started), err
}

// recordGarbage is how much the heap may grow, in percent, before garbage is collected while a record is made. With 3,000 programs
// that needs 26 MB in all, and collecting took a tenth of the time.
const recordGarbage = 400

// make makes the record of a run, and notes its number in the run's folder before.
func (k Keeper) make(ctx context.Context, slot int, mark string, result Result) error {
	o, err := k.opening(slot)
	if err != nil {
		return err
	}
	n, previous, err := k.next(ctx)
	if err != nil {
		return err
	}
	values, err := k.Prisons.PassedValues(k.Record)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(recordGarbage))
	o.Manifest.Run, o.Manifest.Previous = n, previous
	if err := durable.WriteFile(filepath.Join(k.folder(slot), numberName), []byte(strconv.Itoa(n)), 0o600); err != nil {
		return err
	}
	killpoint.Reach("before-gathering")
	g := gathering{Keeper: k, opening: o, result: result, slot: slot, values: values, files: map[string][]byte{}, about: map[string]record.File{}, absent: map[string]string{}}
	run, err := g.gather(ctx)
	if err != nil {
		return err
	}
	who, err := identity.ResolveUser(k.Prisons.Config.With(k.Record.Settings))
	if err != nil {
		who = identity.User{Name: "git-airlock", Mail: "git-airlock@localhost"}
	}
	place := k.place(mark)
	place.Who, place.Ahead = who.String(), g.ahead
	if _, err = place.Put(ctx, run); err == nil {
		k.note(record.EventRunEnd, n, fmt.Sprintf("run %d ended: %s", n, run.Manifest.Status))
	}
	return err
}
