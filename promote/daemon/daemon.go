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

// Config is what a daemon runs with.
type Config struct {
	Engine *promote.Engine // required
	Log    *log.Logger     // required
	// Ready is called once the daemon holds its lock. May be nil.
	Ready func()
	// Guard runs beside the cycles, until its context ends. May be nil.
	Guard func(context.Context)
	// News sends when a cycle should be made for what Guard found. May be nil.
	News <-chan struct{}
}

// Run makes promotion cycles whenever something has changed inside or outside, until ctx ends or the airlock is gone
// from where it was: [ErrMoved]. If another daemon holds the airlock's daemon lock, it returns [airlock.ErrBusy].
func Run(ctx context.Context, c Config) error {
	e := c.Engine
	// A process that asks whether a daemon runs holds the lock for an instant.
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
	// A command that stops the airlock may have found no daemon a moment ago.
	if now, err := e.Store.Load(e.Record.ID); err != nil || now.Phase != airlock.Running {
		return err
	}
	if c.Ready != nil {
		c.Ready()
	}
	d := &daemon{engine: e, log: c.Log, news: c.News, outer: watchOuter(e.Repo, e.Record)}
	defer d.outer.close()
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
		d.wait(ctx)
	}
	return nil
}

// daemon is a daemon at work.
type daemon struct {
	engine  *promote.Engine
	log     *log.Logger
	news    <-chan struct{}
	outer   *outerWatch
	last    ledger.Outcome
	failure string        // of the last cycle, logged once
	failing time.Duration // to wait before the next try, longer each time
	inner   <-chan struct{}
	seen    string // signature of the outer files before the last cycle
}

// inPlace reports whether the airlock is where it was.
func (d *daemon) inPlace() bool {
	_, err := os.Lstat(filepath.Join(d.engine.Dir(), lockName))
	return err == nil && d.engine.Repo.InPlace()
}

// failedPoll is how long the daemon waits after a cycle that could not be made; after the next one twice as long,
// up to failedPollMax: what failed may ask the user for a passphrase.
const (
	failedPoll    = time.Second
	failedPollMax = 32 * time.Second
)

func (d *daemon) cycle(ctx context.Context) {
	if d.inner == nil {
		d.inner, _ = d.engine.Watch(ctx) // without an exporter, the cycle will say why there is none
	}
	d.seen = d.outer.signature(d.last.Holds)
	outcome, err := d.engine.Cycle(ctx, promote.Options{})
	d.outer.policy = d.engine.PolicyFile() // a new one is watched from the next cycle on
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
			d.failing = failedPoll // nothing else is tried before that has changed
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
	if len(outcome.Holds) != len(d.last.Holds) {
		// Files in the way are watched from now on; a change between the cycle and this line is found by the next one.
		d.seen = ""
	}
	d.last = outcome
}

// record logs what changed.
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
	// poll is how often the outer files are checked whatever inotify reports; it costs a few stat calls.
	poll = time.Second
	// heldPoll is the same while something holds: a file in the way gives no other sign when it goes.
	heldPoll = 250 * time.Millisecond
)

// wait returns when there may be something to do.
func (d *daemon) wait(ctx context.Context) {
	pause := poll
	if len(d.last.Holds) > 0 {
		pause = heldPoll
	}
	retry := (<-chan time.Time)(nil)
	if d.last.Retry > 0 {
		retry = time.After(d.last.Retry)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-d.inner:
			if !open {
				// The exporter has ended; the next cycle opens another.
				d.inner = nil
				_ = d.engine.Close()
				if d.failing > 0 {
					continue // as long as a cycle fails, another exporter may end at once as well
				}
			}
			return
		case <-retry:
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
