package promote

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/pause"
	"github.com/git-airlock/git-airlock/promote/policy/treelink"
	"github.com/git-airlock/git-airlock/promote/teams"
)

// CycleLock is a file of the host state. It is locked during a cycle, and by commands that must not run during one.
const CycleLock = "cycle.lock"

// NotesRef is the ref of the provenance notes.
const NotesRef = "refs/notes/airlock"

// Engine makes promotion cycles for one airlock. Its exported fields are set once. The other fields save work from
// one cycle to the next. An engine without them comes to the same results.
type Engine struct {
	Repo   *gitops.Repository // seen from the airlock's worktree; required
	Store  airlock.Store      // required
	Record airlock.Record     // required
	// Open opens an exporter. The exporter stays open until Close is called or it fails. Required.
	Open func(context.Context) (Exporter, error)
	// Progress receives the name of a step and its progress. all is 0 if it is not known. May be nil.
	Progress func(step string, done, all int)
	// Guard is the daemon's disk watchdog. It is nil in other processes.
	Guard Guard
	// Egress is the record of the prison's network, for the notes of landed commits. It is nil for a prison without one.
	Egress ledger.Egress
	// Checker runs airlock.check. Without it, commits that need a check wait.
	Checker Checker
	// Landed is called by Drain after a landing. May be nil.
	Landed func(context.Context)
	// Settings are the user's settings that a command has just read. The command's decisions and its first cycle use them. If Settings is nil,
	// each decision and each cycle reads the settings itself.
	Settings []gitops.Setting

	exporter  Exporter
	received  gitops.OID // the last inner tip that the quarantine accepted
	refused   refusal    // the last tip that the quarantine refused, if that took long
	fetched   time.Time  // time of the last attempt to fetch promised objects
	filter    pause.Filter
	recovery  pause.Filter    // after a recovery for which git used up its processor time
	blocker   pause.Blocker   // the paths in the way of the last landing
	uncreated hold.Uncreated  // found by the landings of this engine
	slow      busy.Slow       // the ones for which git had not enough time
	spent     []gitops.OID    // see [ledger.Outcome]; what it will be after this cycle
	unwritten []ledger.Hold   // the holds of the last outcome, if it could not be written
	command   pause.Command   // the user's git command that the last landing waited for
	overtaken bool            // another process moved one of our refs during the last cycle; twice in a row is not a coincidence
	teams     teams.Teams     // the policies as they were read last
	ignores   func() []string // finds the user's ignore files; nil before the first cycle
	ledgers   ledger.Cache
	links     treelink.Trees
	files     quarantine.FileCount
	kept      *kept // what [Standing.Keep] left to the next cycle; or nil
}

// Guard stops the prison before its workspace fills the disk.
type Guard interface {
	// Allow sets the maximum size of the workspace in bytes.
	Allow(maxWorkspace int64)
	// Full returns the hold for which the prison was stopped, or nil if it was not stopped.
	Full() *ledger.Hold
}

// Options are the options of one cycle.
type Options struct {
	// Land lands commits that would otherwise wait for a review.
	Land bool
	// UpTo names the last commit to land, in the form that [Engine.Drop] accepts. Empty means all commits.
	UpTo string
	// From is the inner branch or revision to promote instead of main. Empty means main.
	From string
	// Engine overrides the setting. Empty means the setting.
	Engine string
	// Known promotes only commits that earlier cycles have taken out, and does not read the workspace. That is enough after a verdict, which
	// is about such commits, and the prison in which git reads the workspace takes longer than the rest of the cycle. Known is ignored if the
	// last cycle could not take out everything.
	Known bool

	// Spared does not try again to land up to a commit of [ledger.Outcome.Spent]: each try takes minutes, and ends in the same way unless the
	// user changes something.
	Spared bool

	// Unchecked runs no check, and gives a merge a few seconds. Commits that need a check without a stored result, or more time, wait.
	Unchecked bool
	// CheckFailure is the reason why the last check that a cycle asked for has no result. May be nil.
	CheckFailure error

	// target is the inner commit that UpTo named in an earlier cycle. The names of pending commits change when they
	// are rebuilt.
	target gitops.OID
}

// Dir returns the airlock's host state.
func (e *Engine) Dir() string { return e.Store.Dir(e.Record.ID) }

// LogFile returns the log file of an airlock's daemon.
func LogFile(dir string) string { return filepath.Join(dir, "log") }

// QuarantineDir returns the folder of an airlock's quarantine.
func QuarantineDir(dir string) string { return filepath.Join(dir, "quarantine") }

func (e *Engine) quarantine() *quarantine.Store {
	return quarantine.Open(QuarantineDir(e.Dir()), e.Record.Format)
}

func (e *Engine) bridgeDir() string { return filepath.Join(e.Dir(), "bridge") }

// progress reports the current step of a cycle.
func (e *Engine) progress(step string, done, all int) {
	if e.Progress != nil {
		e.Progress(step, done, all)
	}
}

// Close closes the exporter. If [Standing.Keep] has left the lock to a cycle that was not made, Close releases it.
func (e *Engine) Close() error {
	if e.kept != nil {
		e.kept.unlock()
		e.kept = nil
	}
	return e.closeExporter()
}

func (e *Engine) closeExporter() error {
	if e.exporter == nil {
		return nil
	}
	err := e.exporter.Close()
	e.exporter = nil
	return err
}

// Watch sends whenever the inner refs may have changed, until ctx ends or the exporter ends.
func (e *Engine) Watch(ctx context.Context) (<-chan struct{}, error) {
	exporter, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	return exporter.Watch(ctx)
}

// Writable reports whether the repository and the host state can be written.
func (e *Engine) Writable() bool { return e.unwritable() == nil }

// RuleFiles returns the paths of the user's files from which the last cycle read rules: the user's policy file and
// ignore files. Some of them may not exist.
func (e *Engine) RuleFiles() []string {
	var files []string
	if e.teams.File != "" {
		files = append(files, e.teams.File)
	}
	if e.ignores != nil {
		files = append(files, e.ignores()...)
	}
	return files
}

// open returns the exporter, and opens it first if necessary.
func (e *Engine) open(ctx context.Context) (Exporter, error) {
	if e.exporter != nil {
		return e.exporter, nil
	}
	var err error
	e.exporter, err = e.Open(ctx)
	return e.exporter, err
}

// failed closes an exporter after a read error, so that the next cycle opens a new one.
func (e *Engine) failed(err error) error {
	if _, ok := errors.AsType[*inner.Invalid](err); !ok {
		_ = e.closeExporter()
	}
	return err
}

// drainTime is the time that Drain waits for other git commands to end.
const drainTime = 3 * time.Second

const (
	// retryLater is the pause before a broken inner repository is read again. Its repair may change no ref, and so cause no event: somebody may
	// put an object back, for example.
	retryLater = 900 * time.Millisecond
	// retrySoon is the pause if the cause should be over in a moment, such as another git command.
	retrySoon = 60 * time.Millisecond
)

// Drain makes cycles as long as something prevents a landing that should be over in a moment, or that a check could change. It runs the checks
// that the cycles ask for.
func (e *Engine) Drain(ctx context.Context, options Options) (ledger.Outcome, error) {
	var total ledger.Outcome
	checked := gitops.OID("")
	for end := time.Now().Add(drainTime); ; {
		o, err := e.Cycle(ctx, options)
		options.target, options.Spared = cmp.Or(o.Target, options.target), true
		if o.Landed > 0 || o.Pending > total.Pending { // there is progress
			end = time.Now().Add(drainTime)
		}
		o.Landed, o.OffMain = o.Landed+total.Landed, o.OffMain+total.OffMain
		total = o
		if err == nil && o.Unchecked != nil && o.Unchecked.Commit != checked && e.Checker != nil && !options.Unchecked && options.CheckFailure == nil {
			checked = o.Unchecked.Commit
			e.progress(checks.Key, 0, 0)
			_, options.CheckFailure = e.Checker.Run(ctx, *o.Unchecked)
			end = time.Now().Add(drainTime) // a check may take minutes
			continue
		}
		if err != nil || o.Retry != retrySoon || e.command.Outlasts() || time.Now().After(end) {
			if total.Landed > 0 && e.Landed != nil {
				e.Landed(ctx)
			}
			return total, err
		}
		time.Sleep(retrySoon)
	}
}

const (
	// recoverWait is the time that Recover waits for a running cycle. It is short, because that cycle has begun with a recovery.
	recoverWait = 200 * time.Millisecond
	// recoverTime bounds Recover. Every command begins with Recover, and a filter of the user may never end.
	recoverTime = 10 * time.Second
)

// Recover completes or undoes a landing that a crash interrupted, so that no command sees half a landing. If
// something prevents that, the next cycle reports it as a hold.
func (e *Engine) Recover(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, recoverWait)
	defer cancel()
	unlock, err := e.Store.LockFile(waiting, e.Record.ID, CycleLock)
	if err != nil {
		return gitops.Unless(err, airlock.ErrBusy)
	}
	defer unlock()
	bounded, stop := context.WithTimeout(ctx, recoverTime)
	defer stop()
	if err = land.Recover(bounded, e.Repo, e.Dir()); err == nil {
		err = e.release()
	}
	var collision *land.CollisionError
	if errors.As(err, &collision) || errors.Is(err, land.ErrIndexLocked) || errors.Is(err, land.ErrUnfinished) ||
		errors.Is(err, context.DeadlineExceeded) || gitops.Spent(err) {
		return nil
	}
	return err
}

// RecoverOrHold is like Recover, for callers that can continue only after it has succeeded. It waits for a running
// cycle, and returns a hold if something prevents the recovery.
func (e *Engine) RecoverOrHold(ctx context.Context) (*ledger.Hold, error) {
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, CycleLock)
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

// recover completes or undoes a landing that a crash interrupted, and removes what a killed cycle left behind. If
// something prevents the recovery, it returns a hold.
func (e *Engine) recover(ctx context.Context, before ledger.Outcome, now time.Time) (remarks, error) {
	e.quarantine().Sweep()
	_ = os.RemoveAll(e.bridgeDir()) // opening a bridge would remove it as well, but this cycle may open none
	if e.recovery.Pauses(now, nil) {
		return remarks{}, e.recovery.Err
	}
	err := land.Recover(ctx, e.Repo, e.Dir())
	e.recovery = e.recovery.After(err, time.Now(), nil)
	var collision *land.CollisionError
	var command *land.CommandError
	switch {
	case errors.As(err, &command):
		return locking(hold.CommandAtWork(command), before, now), nil
	case errors.As(err, &collision):
		return remarks{holds: []ledger.Hold{e.interrupted(ctx, collision.Paths)}}, nil
	case errors.Is(err, land.ErrIndexLocked):
		return locking(hold.IndexLocked(e.Repo.GitDir), before, now), nil
	case err != nil:
		return remarks{}, err
	}
	return remarks{}, e.release() // a crash may have prevented the release
}
