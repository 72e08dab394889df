package inbound

import (
	"context"
	"log"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

const (
	// attendPoll is the interval at which the daemon looks for something to do here. Looking costs one read of a small file.
	attendPoll = time.Second
	// attendWait bounds the wait for the store's lock, which another command holds while it changes the airlock.
	attendWait = 100 * time.Millisecond
)

// Attend completes interrupted syncs of a running airlock, until ctx ends.
func Attend(ctx context.Context, in prisons.Prisons, r airlock.Record, logger *log.Logger) {
	tick := time.NewTicker(attendPoll)
	defer tick.Stop()
	said := ""
	for ctx.Err() == nil {
		if err := attend(ctx, in, r); err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			logger.Printf("sync: %s", said)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func attend(ctx context.Context, in prisons.Prisons, r airlock.Record) error {
	dir := in.Store.Dir(r.ID)
	if record, err := ledger.ReadSynced(dir); err != nil || record.Open() == nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, attendWait)
	defer cancel()
	unlock, err := in.Store.Lock(soon)
	if err != nil {
		return nil //nolint:nilerr // the next time
	}
	defer unlock()
	w, end, err := in.Inside(ctx, r)
	if err != nil {
		return err
	}
	defer end() //nolint:errcheck // nothing depends on it any more
	return finish(ctx, w, dir)
}
