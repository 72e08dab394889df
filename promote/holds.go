package promote

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Collision returns the hold for changes of the user in the way of a landing.
func (e *Engine) Collision(ctx context.Context, paths []string) ledger.Hold {
	return hold.Collision(ctx, e.Repo, e.Dir(), paths)
}

// interrupted returns the hold of a landing that a crash interrupted, if it cannot be completed or undone without overwriting later changes.
func (e *Engine) interrupted(ctx context.Context, paths []string) ledger.Hold {
	h := e.Collision(ctx, paths)
	h.Message = "a landing was interrupted, and files it was writing have been changed since; put them aside to let it be finished"
	return h
}

// locking returns a hold for a lock that another command should release in a moment. If the lock stays longer, a crash may have left it.
func locking(h ledger.Hold, before ledger.Outcome, now time.Time) remarks {
	r := remarks{[]ledger.Hold{h}, retrySoon}
	for _, b := range before.Of(ledger.IndexLocked) {
		if now.Sub(b.Since) > drainTime {
			r.retry = retryLater
		}
	}
	return r
}
