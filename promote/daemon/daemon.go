package daemon

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Config is the configuration of a daemon.
type Config struct {
	Engine *promote.Engine // required
	Log    *log.Logger     // required
	// Ready is called once the daemon holds its lock. May be nil.
	Ready func()
	// Guard is called once, and runs beside the cycles until its context ends. May be nil.
	Guard func(context.Context)
	// News receives a value when Guard has found a reason for a cycle. May be nil.
	News <-chan struct{}
	// Landed is called when commits have landed and none has landed for some seconds since. It does a part of its work and returns whether
	// there is more. If it failed, it is called again after a while. May be nil.
	Landed func(context.Context) (more, failed bool)
}

// Run makes promotion cycles whenever something has changed inside or outside. It returns when ctx ends. It returns
// [ErrMoved] if the airlock is no longer where it was, and [airlock.ErrBusy] if another daemon holds the airlock's
// daemon lock.
func Run(ctx context.Context, c Config) error {
	e := c.Engine
	// Wait a moment: a process that checks whether a daemon runs holds the lock for an instant.
	waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	unlock, err := e.Store.LockFile(waiting, e.Record.ID, lockName)
	if err != nil {
		return err
	}
	defer unlock()
	defer e.Close()
	lockFile := filepath.Join(e.Dir(), lockName)
	if err := os.WriteFile(lockFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return err
	}
	// A command may have stopped the airlock a moment ago, before this daemon held the lock.
	if now, err := e.Store.Load(e.Record.ID); err != nil || now.Phase != airlock.Running {
		return err
	}
	if c.Ready != nil {
		c.Ready()
	}
	d := &daemon{engine: e, log: c.Log, news: c.News, landed: c.Landed, due: time.Now().Add(quietTime), outer: watchOuter(e.Repo, e.Store, e.Record)}
	defer d.outer.close()
	checks, end := context.WithCancel(ctx)
	d.checks.checker, d.checks.log = e.Checker, c.Log
	defer d.checks.wait()
	defer end()
	guarded, leave := context.WithCancel(ctx)
	var guard sync.WaitGroup
	if c.Guard != nil {
		guard.Go(func() { c.Guard(guarded) })
	}
	defer guard.Wait()
	defer leave()
	for ctx.Err() == nil {
		if !d.inPlace() {
			return ErrMoved
		}
		d.cycle(ctx)
		d.checks.begin(checks, d.last)
		d.wait(ctx)
	}
	return nil
}

// daemon is the state of a running daemon.
type daemon struct {
	engine  *promote.Engine
	log     *log.Logger
	news    <-chan struct{}
	landed  func(context.Context) (more, failed bool)
	told    int       // the number of landed commits when landed last had done all its work
	due     time.Time // when landed is called next
	outer   *outerWatch
	last    ledger.Outcome
	failure string        // error of the last cycle, logged once
	failing time.Duration // pause before the next try, doubled after each failure
	checks  checking
	inner   <-chan struct{}
	seen    string // signature of the outer files before the last cycle
}

// inPlace reports whether the airlock is still where it was.
func (d *daemon) inPlace() bool {
	_, err := os.Lstat(filepath.Join(d.engine.Dir(), lockName))
	return err == nil && d.engine.Repo.InPlace()
}

// failedPoll is the pause after a failed cycle. The pause doubles with each further failure, up to failedPollMax, because each failing cycle
// may ask the user for a passphrase.
const (
	failedPoll    = time.Second
	failedPollMax = 32 * time.Second
)

func (d *daemon) cycle(ctx context.Context) {
	if d.inner == nil {
		d.inner, _ = d.engine.Watch(ctx) // the cycle reports the same error
	}
	d.seen = d.outer.signature(d.last.Holds)
	outcome, err := d.engine.Cycle(ctx, promote.Options{CheckFailure: d.checks.failure, Spared: d.failing == 0})
	d.outer.rules = d.engine.RuleFiles() // new files are in the signature from the next cycle on
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if d.failure != err.Error() {
			d.log.Print(err)
		}
		d.failure = err.Error()
		d.failing = min(max(2*d.failing, failedPoll), failedPollMax)
		if !d.engine.Writable() {
			d.failing = failedPoll // such a cycle ends before it does anything, so the pause stays short
		}
		d.last.Retry = d.failing
		return
	}
	d.failing = 0
	if d.failure != "" {
		d.log.Print("works again")
		d.failure = ""
	}
	d.record(outcome)
	if outcome.Total != d.last.Total {
		d.due = time.Now().Add(quietTime)
	}
	if len(outcome.Holds) != len(d.last.Holds) {
		// The signature includes the files in the way from now on. They may have changed since the cycle, so another
		// cycle follows.
		d.seen = ""
	}
	d.last = outcome
}

// record logs the landed commits and the new holds of an outcome.
func (d *daemon) record(o ledger.Outcome) {
	if o.Landed > 0 {
		d.log.Printf("landed %d commits", o.Landed)
	}
	for i, h := range o.Holds {
		if i >= len(d.last.Holds) || d.last.Holds[i].Reason != h.Reason || d.last.Holds[i].Message != h.Message {
			d.log.Printf("held: %s: %s", h.Reason, h.Message)
		}
	}
}

const (
	// poll is the interval at which the outer files are checked even without an event from inotify. A check costs a
	// few stat calls.
	poll = time.Second
	// heldPoll is the interval while there is a hold, because no event reports that a file in the way is gone.
	heldPoll = 250 * time.Millisecond
	// quietTime is the time without a landing after which Landed is called. Landed writes to the repository, and that has to wait: an agent
	// often makes several commits in a row, and people and scripts often run git after a landing. A git fsck at the same time as a writer
	// reports the new objects as missing.
	quietTime = 5 * time.Second
	// toldAgain is the pause after which Landed is called again if it failed.
	toldAgain = 30 * time.Second
	// toldMore is the pause after which Landed is called again if there is more to do. Cycles, and other processes that wait for a lock, go first.
	toldMore = 50 * time.Millisecond
)

// tell calls landed, and sets the time of the next call unless all work is done.
func (d *daemon) tell(ctx context.Context) {
	switch more, failed := d.landed(ctx); {
	case failed:
		d.due = time.Now().Add(toldAgain)
	case more:
		d.due = time.Now().Add(toldMore)
	default:
		d.told = d.last.Total
	}
}

// wait returns when a cycle may have something to do.
func (d *daemon) wait(ctx context.Context) {
	pause := poll
	if len(d.last.Holds) > 0 {
		pause = heldPoll
	}
	retry, check := (<-chan time.Time)(nil), (<-chan time.Time)(nil)
	if pause := d.checks.pause(d.last); pause > 0 {
		check = time.After(pause)
	}
	if d.last.Retry > 0 {
		retry = time.After(d.last.Retry)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		quiet := (<-chan time.Time)(nil)
		if d.landed != nil && d.last.Total != d.told {
			quiet = time.After(time.Until(d.due))
		}
		select {
		case <-ctx.Done():
			return
		case _, open := <-d.inner:
			if !open {
				// The exporter has ended. The next cycle opens a new one.
				d.inner = nil
				_ = d.engine.Close()
				if d.failing > 0 {
					continue // wait for the retry: while cycles fail, a new exporter may end at once as well
				}
			}
			return
		case <-quiet:
			d.tell(ctx)
			continue
		case <-retry:
			return
		case <-check:
			return
		case err := <-d.checks.done:
			d.checks.ended(err)
			return
		case <-d.outer.events():
		case <-d.news:
			return
		case <-tick.C:
			if !d.inPlace() {
				return
			}
		}
		if d.outer.signature(d.last.Holds) != d.seen {
			return
		}
	}
}
