package promote

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/disk"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Cycle makes one promotion cycle and returns its outcome. It waits for a cycle of another process to end. A hold is
// not an error. An error means that the cycle failed, and that the waiting commits still wait.
func (e *Engine) Cycle(ctx context.Context, options Options) (ledger.Outcome, error) {
	hostenv.Refresh()
	lock, err := e.lockWhole(ctx)
	if err != nil {
		return ledger.Outcome{}, err
	}
	defer lock.unlock()
	before, err := ledger.ReadOutcome(e.Dir())
	if err != nil {
		return before, err
	}
	if e.unwritten != nil {
		before.Holds = e.unwritten // as they have events already
	}
	events.Retry(e.Dir())
	now := time.Now()
	e.spent = slices.Clone(before.Spent)
	outcome, err := e.promote(ctx, options, before, now, lock.facts)
	e.Settings = nil // the next cycle obeys the settings of its own time
	if ctx.Err() == nil {
		outcome, err = e.holdOrError(outcome, err, before, now)
	}
	if err != nil {
		failed := before.Fail(ctx, e.Dir(), err, e.spent)
		if e.unwritable() != nil {
			failed = nil // the failure cannot be written either
		}
		return before, errors.Join(err, failed)
	}
	return e.finish(outcome, before)
}

const (
	// restorePatience is how long a cycle waits for a restore of the workspace, or until somebody finishes one that was interrupted.
	restorePatience = 20 * time.Second
	restorePoll     = 20 * time.Millisecond
)

// kept is a held lock of cycles. facts are those that a command has read under the lock, or nil.
type kept struct {
	unlock func() // also closes the facts
	facts  *facts
}

// lockWhole takes the lock of cycles when the workspace is whole. During a restore it has files of two states, so lockWhole waits for the
// end of a restore.
func (e *Engine) lockWhole(ctx context.Context) (lock *kept, err error) {
	for begun := time.Now(); ; time.Sleep(restorePoll) {
		if lock, e.kept = e.kept, nil; lock == nil {
			lock = &kept{}
			lock.unlock, err = e.Store.LockFile(ctx, e.Record.ID, CycleLock)
		}
		if err != nil || !e.Store.Restoring(e.Record.ID) {
			return lock, err
		}
		lock.unlock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Since(begun) > restorePatience {
			return nil, airlock.ErrRestoring
		}
	}
}

// promote makes one cycle, which starts from the outcome of the last one. read are the facts that a command has read for it, or nil.
func (e *Engine) promote(ctx context.Context, options Options, before ledger.Outcome, now time.Time, read *facts) (outcome ledger.Outcome, err error) {
	outcome = before
	outcome.Holds, outcome.Failure = nil, ""
	if err := e.unwritable(); err != nil {
		return outcome, err
	}
	if stopped, err := e.recover(ctx, before, now); err != nil || stopped.holds != nil {
		return stopped.added(outcome), err
	}
	if err := e.heal(ctx); err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, e.release()) }() // refs now reach the delivered objects
	options.Known = options.Known && before.Inner != "" && before.Failure == "" && !before.Held(ledger.InnerInvalid) && !before.Held(ledger.InnerMain)
	facts, err := e.survey(ctx, options, before.Retried(options.Unchecked), now, read)
	defer facts.close()
	if err != nil {
		return outcome, err
	}
	outcome, err = e.pipeline(ctx, facts, outcome.Land(facts.adopted, now))
	outcome.Holds = hold.OnLine(history.SourceOf(options.From, facts.main, facts.beside).From, outcome.Holds)
	if e.noRoom(err) {
		outcome = outcome.With(e.heldBesides(ctx, facts, outcome)...)
	}
	outcome.Pending, outcome.Total, outcome.CutShort = len(facts.ledger.Tail), len(facts.ledger.Landed), e.slow.CutShort() || outcome.CutShort && options.Unchecked
	outcome.Spent = slices.DeleteFunc(slices.Clone(e.spent), func(id gitops.OID) bool { return len(facts.ledger.WaitingFor(id)) == 0 })
	e.ledgers.Keep(facts.ledger) // for the next cycle
	return outcome, err
}

// pipeline is the data path. Each stage makes a value that no other stage changes. The results of the stages before the
// landing can be discarded at any moment.
func (e *Engine) pipeline(ctx context.Context, facts facts, outcome ledger.Outcome) (ledger.Outcome, error) {
	bridge := newLazyBridge(e, facts)
	defer bridge.close()

	taken, err := e.receive(ctx, facts)
	outcome = taken.added(outcome)
	if err != nil {
		return outcome, err
	}
	if facts, err = e.carryVerdicts(ctx, facts, taken); err == nil {
		err = e.recognize(ctx, facts, taken, bridge)
	}
	if err != nil {
		held, err := refused(err)
		return held.added(outcome), err
	}
	plan, built, judged, err := e.choose(ctx, facts, taken, bridge)
	if plan.Plan != nil {
		outcome = plan.entered(outcome)
	}
	if err == nil {
		outcome.Rebased, err = facts.reader().Rebased(ctx, facts.ledger, plan.Found())
	}
	if err != nil {
		held, err := refused(err)
		return held.added(outcome), err
	}
	outcome = judged.added(built.entered(outcome))
	delivered, err := e.deliver(ctx, facts, judged, bridge)
	if err != nil {
		return outcome, err
	}
	landed, err := e.land(ctx, facts, outcome, plan, judged, delivered, bridge)
	outcome = landed.entered(outcome, facts.now)
	outcome.OffMain = plan.OffMain(facts.ledger.Landed[len(facts.ledger.Landed)-landed.count:])
	if err == nil && delivered.written.Changed {
		err = delivered.written.Decisions.Open(facts.ledger.Has).Write(e.Dir())
	}
	if err != nil || outcome.Landed == 0 {
		return outcome, err
	}
	return outcome, facts.quarantine.Tidy(ctx)
}

// maxRounds bounds the number of times that a cycle builds its commits.
const maxRounds = 20

// choose plans, builds and judges commits. If a rule holds a commit, or if a commit does not apply without one that was left out before,
// choose sets this commit aside and starts again, as long as other commits stand without it.
func (e *Engine) choose(ctx context.Context, f facts, t taken, w *lazyBridge) (p planned, b built, j judged, err error) {
	held, without, err := e.heldBefore(f)
	if err != nil {
		return p, b, j, err
	}
	var trees *build.Trees // of inner commits, which are the same in each round
	for round := range maxRounds {
		var next planned
		if next, err = e.plan(ctx, f, t, held); err == nil {
			next, err = e.walk(ctx, next, trees, w)
		}
		if err != nil {
			return next, b, j, err
		}
		trees = next.trees
		if round > 0 && slices.Equal(next.Chain, p.Chain) && slices.Equal(next.Held(), p.Held()) {
			break
		}
		p = next
		if b, err = e.build(ctx, f, p, w); err == nil {
			j, err = e.judge(ctx, f, p, b, w)
		}
		if err != nil {
			return p, b, j, err
		}
		known := len(held)
		lacking := slices.DeleteFunc(b.lacking(p), func(id gitops.OID) bool { return held[id] })
		without = append(without, lacking...)
		held.Add(slices.Concat(lacking, j.held())...)
		if len(held) == known {
			break
		}
	}
	b.without = without
	return p, b, j, nil
}

// heldBefore returns the inner commits that the first round sets aside: those that a rule is known to hold, and those that did not apply
// to the present branch (lacking). A lacking commit is tried again as soon as a commit that it may need can land.
func (e *Engine) heldBefore(f facts) (held gitops.Set[gitops.OID], lacking []gitops.OID, err error) {
	held = gitops.Set[gitops.OID]{}
	results, err := f.rules.results()
	for _, v := range results.Commits {
		if v.Holds() && !f.ledger.HasOuter(v.Commit) {
			held[v.Inner] = true
		}
	}
	if f.before.Onto == f.refs.onto() && f.options.Engine == "" && !f.frees(held) {
		lacking = slices.Clone(f.before.Lacking)
	}
	held.Add(append(slices.Collect(maps.Keys(e.uncreated)), lacking...)...)
	return held, lacking, err
}

// frees reports whether a commit that was left out may land now, although the last cycle did not build it to land.
func (f facts) frees(held map[gitops.OID]bool) bool {
	verdicts, b := f.verdicts(), f.before
	return len(b.Lacking) > 0 && slices.ContainsFunc(f.ledger.LeftOut(), func(id gitops.OID) bool {
		pending := slices.ContainsFunc(f.ledger.Tail, func(t ledger.Pair) bool { return t.Inner == id })
		tried := slices.Contains(b.Unbuilt, id) || pending && !slices.Contains(b.Aside, id)
		return !held[id] && !verdicts.Holds(id) && f.rules.decisions.DropOf(id) == nil && !tried
	})
}

// remarks are what a stage adds to the outcome: the reasons why commits wait, and the time until the next cycle.
type remarks struct {
	holds []ledger.Hold
	retry time.Duration
}

// refusing returns the hold of a workspace that only the agent can mend, which takes a while.
func refusing(h ledger.Hold) remarks { return remarks{[]ledger.Hold{h}, retryLater} }

func (r remarks) added(o ledger.Outcome) ledger.Outcome { return o.With(r.holds...).Sooner(r.retry) }

// refused turns an error about an invalid inner object into a hold. Any other error stays an error.
func refused(err error) (remarks, error) {
	if invalid, ok := errors.AsType[*inner.Invalid](err); ok {
		return refusing(hold.InnerInvalid(invalid)), nil
	}
	return remarks{}, err
}

// holdOrError turns an error into a hold if the cause lies outside the cycle, such as a full disk or another process's
// lock. Any other error stays an error.
func (e *Engine) holdOrError(o ledger.Outcome, err error, before ledger.Outcome, now time.Time) (ledger.Outcome, error) {
	var locked *gitops.LockedError
	switch {
	case err == nil:
	case e.noRoom(err):
		o = o.With(e.diskFull(err))
		if !disk.Full(e.Dir()) {
			o = o.Sooner(retryLater) // a quota or another file system, for example: no number shows when there is room again
		}
	case errors.As(err, &locked):
		o = locking(hold.RefLocked(locked), before, now).added(o)
	case errors.Is(err, gitops.ErrRefMoved) && !e.overtaken: // by the notes of another airlock, for example
		e.overtaken = true
		return o.Sooner(retrySoon), nil
	default:
		return o, err
	}
	e.overtaken = false
	return o, nil
}

// finish completes the outcome and writes it.
func (e *Engine) finish(o, before ledger.Outcome) (ledger.Outcome, error) {
	o = o.With(e.carried(before)...)
	o.Holds = ledger.SortHolds(o.Holds, before.Holds, time.Now())
	events.Cycle(e.Dir(), e.Record.Session, before, o)
	err := o.Write(e.Dir())
	if e.unwritten = nil; err != nil {
		e.unwritten = o.Holds
	}
	if gitops.NoRoom(err) && !o.Held(ledger.DiskFull) {
		o.Holds = ledger.SortHolds(append(o.Holds, e.diskFull(nil)), before.Holds, time.Now())
	}
	if o.Held(ledger.DiskFull) {
		err = nil // there may be no room for the file; State checks the disk itself
	}
	return o, err
}

// carried returns the holds that no cycle changes: those of the disk watchdog. The daemon has the watchdog itself,
// and other processes take the holds of the last cycle.
func (e *Engine) carried(before ledger.Outcome) []ledger.Hold {
	if e.Guard == nil {
		return before.Of(ledger.WorkspaceFull)
	}
	if full := e.Guard.Full(); full != nil {
		return []ledger.Hold{*full}
	}
	return nil
}
