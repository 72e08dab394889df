package inbound

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

const (
	// attendPoll is the interval at which the daemon looks for something to do here.
	attendPoll = time.Second
	// quietPolls is how many intervals must pass without a new commit of the agent before Attend delivers reasons. An agent that gets a
	// reason in the middle of its work would do the work again.
	quietPolls = 5
	// attendWait bounds the wait for the store's lock, which another command holds while it changes the airlock.
	attendWait = 100 * time.Millisecond
	// attendTime bounds one try, during which the daemon holds that lock.
	attendTime = 10 * time.Second
	// mostSkipped bounds the intervals that are skipped after a try that failed. They double with each further one: the agent may be why they
	// fail.
	mostSkipped = 60
)

// Attend completes interrupted syncs of a running airlock, delivers the reasons of verdicts, and carries out syncs that wait until the
// agent's work is not in the way, until ctx ends. engine returns the engine for one of them.
func Attend(ctx context.Context, in prisons.Prisons, r airlock.Record, engine func() *promote.Engine, logger *log.Logger) {
	tick := time.NewTicker(attendPoll)
	defer tick.Stop()
	a := attendant{in: in, record: r, engine: engine}
	for said := ""; ctx.Err() == nil; {
		if err := a.attend(ctx); err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			logger.Printf("bring to the agent: %s", said)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// attendant is the state of Attend between two polls.
type attendant struct {
	in     prisons.Prisons
	record airlock.Record
	engine func() *promote.Engine
	files  ledger.Stamp
	waits  pendingWork
	tip    gitops.OID // the agent's newest commit at the last poll
	quiet  int        // polls since the agent's newest commit
	failed int        // polls that were skipped after the last try, if that failed
	skip   int        // polls to skip before the next try
}

// pause sets the pause after a try with the given error.
func (a *attendant) pause(err error) {
	if err == nil {
		a.failed = 0
		return
	}
	a.failed = min(max(2*a.failed, 1), mostSkipped)
	a.skip = a.failed
}

// attend does once what must be done. If the record has not changed and nothing must be done, it only calls stat(2) twice.
func (a *attendant) attend(ctx context.Context) error {
	dir := a.in.Store.Dir(a.record.ID)
	stamp := ledger.StampOf(dir)
	if stamp != a.files {
		waits, err := workIn(dir)
		if err != nil {
			return err
		}
		a.files, a.waits, a.quiet = stamp, waits, 0
		a.failed, a.skip = 0, 0
	}
	if !a.waits.open && !a.waits.reasons && a.waits.wanted == nil {
		return nil
	}
	outcome, err := ledger.ReadOutcome(dir)
	if err != nil {
		return err
	}
	if a.quiet++; outcome.Inner != a.tip {
		a.tip, a.quiet = outcome.Inner, 0
		if a.waits.wanted != nil {
			a.skip = 0 // this can be the commit that the sync has waited for
		}
	}
	if a.skip > 0 {
		a.skip--
		return nil
	}
	if !a.waits.open && a.waits.wanted == nil && a.quiet < quietPolls {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, attendWait)
	defer cancel()
	unlock, err := a.in.Store.LockAfter(soon)
	if err != nil {
		return nil //nolint:nilerr // the next time
	}
	defer unlock()
	err = SendToAgent(ctx, a.in, a.record, a.quiet >= quietPolls, attendTime)
	if err == nil && a.waits.wanted != nil {
		err = a.sync(ctx, *a.waits.wanted)
	}
	a.pause(err)
	return err
}

// sync carries out a sync for which the user does not wait. The caller holds the store's lock.
func (a *attendant) sync(ctx context.Context, wanted ledger.Wanted) error {
	exclude, err := Excluded(ctx, a.in.Repo, a.in.Config, a.record.Settings)
	if err != nil {
		return err
	}
	engine := a.engine()
	engine.Store = a.in.Store
	defer engine.Close()
	q := Request{Prisons: a.in, Engine: engine, Record: a.record, Exclude: exclude, Later: &wanted, Screen: RefuseSecrets}
	if wanted.Secrets {
		q.Screen = func(scan.Report) error { return nil }
	}
	if _, err = q.held(ctx); errors.Is(err, incoming.ErrNothing) {
		return nil
	}
	return err
}
