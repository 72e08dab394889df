package promote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Collision returns the hold for changes of the user in the way of a landing.
func (e *Engine) Collision(ctx context.Context, paths []string) ledger.Hold {
	for i, p := range paths { // one path for all that is in the .git folder of another repository
		if top, _, below := strings.Cut(p, "/.git/"); below {
			paths[i] = top
		}
	}
	paths = slices.Compact(paths)
	h := ledger.Hold{Reason: ledger.Collision, Paths: gitops.Escaped(paths), Places: paths,
		Message: fmt.Sprintf("landing would overwrite changes of yours that are not committed, at %d paths", len(paths))}
	switch other := func(p string) bool { return land.Repository(e.Repo, p) }; {
	case slices.ContainsFunc(paths, other):
		h.Message = "landing would write into another repository, or over it: " + h.Paths[slices.IndexFunc(paths, other)]
	case len(paths) == 1:
		h.Message = "landing would overwrite a change of yours that is not committed: " + h.Paths[0]
	}
	h.Next = hold.PutAside(ctx, e.Repo, e.Dir(), paths)
	return h
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
