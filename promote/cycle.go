package promote

import (
	"context"
	"errors"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Cycle makes one promotion cycle and returns its outcome. It waits for a cycle of another process to end. A hold is
// not an error; an error means that the cycle failed, and that the commits that waited still wait.
func (e *Engine) Cycle(ctx context.Context, options Options) (ledger.Outcome, error) {
	hostenv.Refresh()
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return ledger.Outcome{}, err
	}
	defer unlock()
	before, err := ledger.ReadOutcome(e.Dir())
	if err != nil {
		return before, err
	}
	now := time.Now()
	outcome, err := e.promote(ctx, options, before, now)
	if ctx.Err() == nil {
		outcome, err = e.excuse(outcome, err, before, now)
	}
	if err != nil {
		failed := before.Fail(ctx, e.Dir(), err)
		if e.unwritable() != nil {
			failed = nil // the failure itself cannot be written down either
		}
		return before, errors.Join(err, failed)
	}
	return e.finish(outcome, before)
}

// promote makes a cycle from what the last one left.
func (e *Engine) promote(ctx context.Context, options Options, before ledger.Outcome, now time.Time) (outcome ledger.Outcome, err error) {
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
	defer func() { err = errors.Join(err, e.release()) }() // refs reach now what was delivered
	facts, err := e.survey(ctx, options, before, now)
	defer facts.close()
	if err != nil {
		return outcome, err
	}
	outcome, err = e.carry(ctx, facts, outcome.Land(facts.adopted, now))
	return e.counted(outcome, facts.ledger), err
}

// carry is the data path. Each stage makes a value that nobody writes afterwards. What the stages before the landing
// make can be thrown away at any moment.
func (e *Engine) carry(ctx context.Context, facts facts, outcome ledger.Outcome) (ledger.Outcome, error) {
	bench := newBench(e, facts)
	defer bench.close()

	taken, err := e.receive(ctx, facts)
	outcome = taken.added(outcome)
	if err != nil {
		return outcome, err
	}
	plan, err := e.plan(ctx, facts, taken)
	if err != nil {
		return e.invalid(outcome, err)
	}
	outcome = plan.entered(outcome)
	built, err := e.build(ctx, facts, plan, bench)
	if err != nil {
		return e.invalid(outcome, err)
	}
	outcome = built.entered(outcome)
	judged, err := e.judge(ctx, facts, plan, built, bench)
	outcome = judged.added(outcome)
	if err != nil {
		return e.invalid(outcome, err)
	}
	delivered, err := e.deliver(ctx, facts, judged, bench)
	if err != nil {
		return outcome, err
	}
	landed, err := e.land(ctx, facts, outcome, plan, judged, delivered, bench)
	outcome = landed.entered(outcome, facts.now)
	if err != nil || outcome.Landed == 0 {
		return outcome, err
	}
	return outcome, facts.quarantine.Tidy(ctx)
}

// remarks are what a stage adds to the outcome: why commits wait, and when to try again.
type remarks struct {
	holds []ledger.Hold
	retry time.Duration
}

func (r remarks) added(o ledger.Outcome) ledger.Outcome { return o.With(r.holds...).Sooner(r.retry) }

// counted enters what the ledger holds at the end of a cycle, and keeps it for the next one.
func (e *Engine) counted(o ledger.Outcome, l *ledger.Ledger) ledger.Outcome {
	o.Pending, o.Total = len(l.Tail), len(l.Landed)
	e.ledgers.Keep(l)
	return o
}

// invalid makes a hold of what the agent made and no repository may have; any other error stays one.
func (e *Engine) invalid(o ledger.Outcome, err error) (ledger.Outcome, error) {
	var invalid *gitops.Invalid
	if errors.As(err, &invalid) {
		return innerInvalid(invalid).added(o), nil
	}
	return o, err
}

// excuse makes a hold of an error that keeps a cycle from being made and is not a failure of its own; any other error
// stays one.
func (e *Engine) excuse(o ledger.Outcome, err error, before ledger.Outcome, now time.Time) (ledger.Outcome, error) {
	var locked *gitops.LockedError
	switch {
	case err == nil:
	case gitops.NoRoom(err) || DiskFull(e.Dir()):
		o = o.With(e.diskFull(err))
		if !DiskFull(e.Dir()) {
			o = o.Sooner(mendedPoll) // a quota, say, or another file system: no number tells when there is room
		}
	case errors.As(err, &locked):
		o = locking(refLocked(locked.Lock), before, now).added(o)
	case errors.Is(err, gitops.ErrRefMoved) && !e.overtaken: // by another airlock's notes, say
		e.overtaken = true
		return o.Sooner(unsettledPoll), nil
	default:
		return o, err
	}
	e.overtaken = false
	return o, nil
}

// finish writes the outcome down.
func (e *Engine) finish(o, before ledger.Outcome) (ledger.Outcome, error) {
	o = o.With(e.carried(before)...)
	o.Holds = ledger.SortHolds(o.Holds, before.Holds, time.Now())
	err := o.Write(e.Dir())
	if gitops.NoRoom(err) && !o.Held(ledger.DiskFull) {
		o.Holds = ledger.SortHolds(append(o.Holds, e.diskFull(nil)), before.Holds, time.Now())
	}
	if o.Held(ledger.DiskFull) {
		err = nil // there may be no room for it; State looks for itself
	}
	return o, err
}

// carried returns the holds that a cycle leaves as they are: the watchdog's. The daemon asks the watchdog, others take
// the last cycle's.
func (e *Engine) carried(before ledger.Outcome) []ledger.Hold {
	if e.Guard == nil {
		return before.Of(ledger.WorkspaceFull)
	}
	if full := e.Guard.Full(); full != nil {
		return []ledger.Hold{*full}
	}
	return nil
}
