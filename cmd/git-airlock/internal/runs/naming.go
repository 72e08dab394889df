package runs

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/attest"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/record/store"
)

// newest is how many of the newest records Naming reads. A statement is made soon after a landing, so older records have other commits.
const newest = 20

// Naming returns the function with which a statement names the runs in which a commit landed. A run without a record has not ended, so
// commits that landed since its beginning landed in it. Times of landings are in whole seconds.
func (k Keeper) Naming(ctx context.Context) (attest.Runs, error) {
	open := k.begun() // first: a run that ends now is in its record then
	recorded, err := store.Landed(ctx, k.Prisons.Repo, k.Record.Session, newest)
	return func(commit gitops.OID, landed time.Time) (all []evidence.Run) {
		known := map[int64]bool{}
		for _, e := range recorded[commit] {
			all = append(all, evidence.Run{Started: e.Manifest.Started, Record: e.Ref})
			known[e.Manifest.Started.UnixNano()] = true
		}
		for _, begun := range open {
			if !landed.Before(begun.Truncate(time.Second)) && !known[begun.UnixNano()] {
				all = append(all, evidence.Run{Started: begun})
			}
		}
		return all
	}, err
}

// begun returns the beginnings of the runs that have no record yet, as far as they can be read.
func (k Keeper) begun() (times []time.Time) {
	slots, _ := k.open() // the command that makes the record reports what cannot be read
	for _, slot := range slots {
		if o, err := k.opening(slot); err == nil {
			times = append(times, o.Manifest.Started)
		}
	}
	return times
}
