package promote

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// cycleLock is the file of the host state that is locked during a cycle, and by commands that must not meet one.
const cycleLock = "cycle.lock"

// NotesRef is the ref of the provenance notes.
const NotesRef = "refs/notes/airlock"

// Engine makes promotion cycles for one airlock. Its exported fields are set once. The others are kept from one
// cycle to the next to save work; an engine without them comes to the same results.
type Engine struct {
	Repo   *gitops.Repository // seen from the airlock's worktree; required
	Store  airlock.Store      // required
	Record airlock.Record     // required
	// Open opens an exporter; it stays open until Close or until it fails. Required.
	Open func(context.Context) (Exporter, error)
	// Progress receives the name of a step and how much of it is done; all is 0 where it is not known. May be nil.
	Progress func(step string, done, all int)
	// Guard is the daemon's disk watchdog; nil elsewhere.
	Guard Guard

	exporter  Exporter
	received  gitops.OID // last inner tip that the quarantine accepted
	refused   refusal    // the last tip that it refused, if that took long
	fetched   time.Time  // when a remote was last asked for what it promised
	filter    filterPause
	blocker   blocker // what was in the way of the last landing
	overtaken bool    // a ref of ours moved under the last cycle: twice in a row is more than chance
	teams     teams   // as they were read last
	ledgers   ledger.Cache
	files     fileCount
}

// Guard stops the prison before its workspace fills the disk.
type Guard interface {
	// Allow sets how many bytes a workspace may have.
	Allow(maxWorkspace int64)
	// Full returns the hold for which the prison was stopped; nil if it was not.
	Full() *ledger.Hold
}

// Options of one cycle.
type Options struct {
	// Land lands what would otherwise wait for a review.
	Land bool
	// UpTo names the last commit to be landed, as [Engine.Drop] has its names; empty means all.
	UpTo string
	// From is the inner branch or revision that is promoted in the place of main; empty means main.
	From string
	// Engine goes before the setting; empty means the setting.
	Engine string

	target gitops.OID // the inner commit that UpTo stood for in an earlier cycle; pending ones get other names when they are rebuilt
}

// Dir returns the airlock's host state.
func (e *Engine) Dir() string { return e.Store.Dir(e.Record.ID) }

// LogFile returns the file that the daemon of an airlock writes its log to.
func LogFile(dir string) string { return filepath.Join(dir, "log") }

// QuarantineDir returns the folder of an airlock's quarantine.
func QuarantineDir(dir string) string { return filepath.Join(dir, "quarantine") }

func (e *Engine) quarantine() *gitops.Quarantine {
	return gitops.OpenQuarantine(QuarantineDir(e.Dir()), e.Record.Format)
}

func (e *Engine) bridgeDir() string { return filepath.Join(e.Dir(), "bridge") }

// progress reports the step that a cycle is at.
func (e *Engine) progress(step string, done, all int) {
	if e.Progress != nil {
		e.Progress(step, done, all)
	}
}

// Close closes the exporter.
func (e *Engine) Close() error {
	if e.exporter == nil {
		return nil
	}
	err := e.exporter.Close()
	e.exporter = nil
	return err
}

// Watch sends whenever the inner refs may have changed, until ctx ends or the exporter does.
func (e *Engine) Watch(ctx context.Context) (<-chan struct{}, error) {
	exporter, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	return exporter.Watch(ctx)
}

// Writable reports whether a landing can write where it has to.
func (e *Engine) Writable() bool { return e.unwritable() == nil }

// PolicyFile returns the user's own policy file, as the last cycle read the setting; empty if there is none.
func (e *Engine) PolicyFile() string { return e.teams.file }

// open returns the exporter, and opens it if there is none.
func (e *Engine) open(ctx context.Context) (Exporter, error) {
	if e.exporter != nil {
		return e.exporter, nil
	}
	var err error
	e.exporter, err = e.Open(ctx)
	return e.exporter, err
}

// failed closes an exporter that could not read, so that the next cycle opens another one.
func (e *Engine) failed(err error) error {
	var invalid *gitops.Invalid
	if !errors.As(err, &invalid) {
		_ = e.Close()
	}
	return err
}

// drainTime is how long Drain waits for other git commands to end.
const drainTime = 3 * time.Second

const (
	// mendedPoll is the pause before the workspace is read again while its repository is broken: what mends it (an
	// object put back, say) need not touch a ref.
	mendedPoll = 900 * time.Millisecond
	// unsettledPoll is for what should be over in a moment: another git command at work.
	unsettledPoll = 60 * time.Millisecond
)

// Drain makes cycles until one is not kept from landing by what should be over in a moment.
func (e *Engine) Drain(ctx context.Context, options Options) (ledger.Outcome, error) {
	var total ledger.Outcome
	for end := time.Now().Add(drainTime); ; {
		o, err := e.Cycle(ctx, options)
		options.target = cmp.Or(o.Target, options.target)
		if o.Landed > 0 || o.Pending > total.Pending { // it gets further
			end = time.Now().Add(drainTime)
		}
		o.Landed += total.Landed
		total = o
		if err != nil || o.Retry != unsettledPoll || time.Now().After(end) {
			return total, err
		}
		time.Sleep(unsettledPoll)
	}
}

// recoverTime is how long Recover waits for a cycle at work, which began by recovering.
const recoverTime = 200 * time.Millisecond

// Recover finishes or takes back a landing that a crash interrupted, so that nobody sees half of one. What hinders it
// is left to the next cycle, which reports it as a hold.
func (e *Engine) Recover(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	unlock, err := e.Store.LockFile(waiting, e.Record.ID, cycleLock)
	if errors.Is(err, airlock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err = land.Recover(ctx, e.Repo, e.Dir()); err == nil {
		err = e.release()
	}
	var collision *land.CollisionError
	if errors.As(err, &collision) || errors.Is(err, land.ErrIndexLocked) || errors.Is(err, land.ErrUnsettled) {
		return nil
	}
	return err
}

// RecoverOrHold is Recover for callers that go on only if it was done: it waits for a cycle at work, and returns what
// hinders it.
func (e *Engine) RecoverOrHold(ctx context.Context) (*ledger.Hold, error) {
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	stopped, err := e.recover(ctx, ledger.Outcome{}, time.Now())
	if err != nil || len(stopped.holds) == 0 {
		return nil, err
	}
	return &stopped.holds[0], nil
}

// recover finishes or takes back a landing that a crash interrupted, and removes what a killed cycle left behind. It
// returns what hinders it.
func (e *Engine) recover(ctx context.Context, before ledger.Outcome, now time.Time) (remarks, error) {
	e.quarantine().Sweep()
	_ = os.RemoveAll(e.bridgeDir()) // there may be nothing to build in this cycle
	err := land.Recover(ctx, e.Repo, e.Dir())
	var collision *land.CollisionError
	switch {
	case errors.As(err, &collision):
		return remarks{holds: []ledger.Hold{e.interrupted(ctx, collision.Paths)}}, nil
	case errors.Is(err, land.ErrIndexLocked):
		return locking(e.indexLocked(), before, now), nil
	case err != nil:
		return remarks{}, err
	}
	return remarks{}, e.release() // a crash may have left it to this cycle
}
