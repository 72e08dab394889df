package verdict

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// summaryPatience bounds the time that a summary waits for a promotion cycle.
const summaryPatience = time.Second

// Summary counts the commits of [List] by their states. It uses the stored numbers if they are still true, or if a promotion cycle takes longer
// than a second. If the mode has no review and there is no verdict, it counts nothing.
func Summary(ctx context.Context, e *promote.Engine, mode review.Mode) (review.Counts, error) {
	d, err := ledger.ReadDecisions(e.Dir())
	if err != nil || mode == review.Off && len(d.Reviewed)+len(d.Dropped) == 0 {
		return review.Counts{}, err
	}
	outcome, err := ledger.ReadOutcome(e.Dir())
	if err != nil {
		return review.Counts{}, err
	}
	r := e.Record
	refs, err := e.Repo.Refs(ctx, r.Branch, r.Ref("promoted"), r.Ref("pending"))
	if err != nil {
		return review.Counts{}, err
	}
	of, err := d.Fingerprint(outcome.Inner, refs[r.Branch], refs[r.Ref("promoted")], refs[r.Ref("pending")])
	if err != nil {
		return review.Counts{}, err
	}
	last, err := ledger.ReadReviews(e.Dir())
	if err != nil || last.Of == of {
		return last.Counts, err
	}
	if busy(ctx, e) {
		return last.Counts, nil
	}
	list, err := List(ctx, e)
	if err != nil {
		return last.Counts, err
	}
	last.Of, last.Counts = of, Count(list)
	if !e.Repo.Dry {
		_ = last.Write(e.Dir()) // without room the next summary counts again
	}
	return last.Counts, nil
}

// busy reports whether a promotion cycle does not end within a second.
func busy(ctx context.Context, e *promote.Engine) bool {
	waiting, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	return airlock.IsBusy(e.Store.LockFile(waiting, e.Record.ID, promote.CycleLock))
}

// Count counts a list of [List].
func Count(list []Reviewable) (c review.Counts) {
	for _, r := range list {
		c.Add(r.State)
	}
	return c
}
