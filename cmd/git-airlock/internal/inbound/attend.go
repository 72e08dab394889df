package inbound

import (
	"context"
	"log"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

const (
	// attendPoll is the interval at which the daemon looks for something to do here.
	attendPoll = time.Second
	// quietPolls is the number of intervals without a new commit of the agent's after which reasons are delivered. An agent that
	// is told in the middle of its work would do the work again.
	quietPolls = 5
	// attendWait bounds the wait for the store's lock, which another command holds while it changes the airlock.
	attendWait = 100 * time.Millisecond
)

// Attend completes interrupted syncs of a running airlock, and delivers the reasons of verdicts, until ctx ends.
func Attend(ctx context.Context, in prisons.Prisons, r airlock.Record, logger *log.Logger) {
	tick := time.NewTicker(attendPoll)
	defer tick.Stop()
	a := attendant{in: in, record: r}
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
	files  ledger.Stamp
	waits  work
	tip    gitops.OID // the agent's newest commit at the last poll
	quiet  int        // polls without another one
}

// attend looks once. Without news, this costs two stat calls.
func (a *attendant) attend(ctx context.Context) error {
	dir := a.in.Store.Dir(a.record.ID)
	stamp := ledger.StampOf(dir)
	if stamp != a.files {
		waits, err := workIn(dir)
		if err != nil {
			return err
		}
		a.files, a.waits, a.quiet = stamp, waits, 0
	}
	if !a.waits.open && !a.waits.reasons {
		return nil
	}
	outcome, err := ledger.ReadOutcome(dir)
	if err != nil {
		return err
	}
	if a.quiet++; outcome.Inner != a.tip {
		a.tip, a.quiet = outcome.Inner, 0
	}
	if !a.waits.open && a.quiet < quietPolls {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, attendWait)
	defer cancel()
	unlock, err := a.in.Store.Lock(soon)
	if err != nil {
		return nil //nolint:nilerr // the next time
	}
	defer unlock()
	return SendToAgent(ctx, a.in, a.record, a.quiet >= quietPolls)
}
