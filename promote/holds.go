package promote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// pathsNamed bounds the number of paths in a command of a hold.
const pathsNamed = 50

// Collision returns the hold for changes of the user in the way of a landing.
func (e *Engine) Collision(ctx context.Context, paths []string) ledger.Hold {
	h := ledger.Hold{Reason: ledger.Collision, Paths: gitops.Escaped(paths), Places: paths,
		Message: fmt.Sprintf("landing would overwrite changes of yours that are not committed, at %d paths", len(paths))}
	switch other := func(p string) bool { return land.Repository(e.Repo, p) }; {
	case slices.ContainsFunc(paths, other):
		h.Message = "landing would write into another repository, or over it: " + h.Paths[slices.IndexFunc(paths, other)]
	case len(paths) == 1:
		h.Message = "landing would overwrite a change of yours that is not committed: " + h.Paths[0]
	}
	if len(paths) <= pathsNamed {
		h.Next = hold.PutAside(ctx, e.Repo, paths)
	} else {
		h.Next = []string{"git stash push --include-untracked"}
	}
	return h
}

// interrupted returns the hold of a landing that a crash interrupted, if it cannot be completed or undone without
// overwriting later changes.
func (e *Engine) interrupted(ctx context.Context, paths []string) ledger.Hold {
	h := e.Collision(ctx, paths)
	h.Message = "a landing was interrupted, and files it was writing have been changed since; put them aside to let it be finished"
	return h
}

// conflict returns the hold of a commit that changes the same lines as the user's commits, that git am does not
// apply, or that needs a dropped commit.
func (e *Engine) conflict(ctx context.Context, at refs, c build.Conflict) ledger.Hold {
	switch branch := e.Record.BranchName(); {
	case c.Lacking != nil:
		return hold.NotApplied(*c.Lacking, c.Paths)
	case c.Refused != "":
		return ledger.Hold{Reason: ledger.Conflict, Message: gitops.Text(c.Refused).String(), Next: []string{"git airlock promote --engine tree"}}
	case c.Behind:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock visit", fmt.Sprintf("git airlock promote --drop %.12s", c.Commit)},
			Message: fmt.Sprintf("commit %.12s and a commit on %s change the same lines", c.Commit, branch)}
	case at.tip != at.promoted && e.Repo.IsAncestor(ctx, at.tip, at.promoted):
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git merge " + e.Record.Ref("pending") + "  # brings them back"},
			Message: fmt.Sprintf("commits that landed were taken off %s, and the agent's next change the same lines", branch)}
	case c.Landed:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock review", "git airlock promote --resolve", "git merge " + e.Record.Ref("pending")},
			Message: fmt.Sprintf("landed commits on %s and older or rewritten ones of the agent change the same lines", branch)}
	default:
		return ledger.Hold{Reason: ledger.Conflict, Paths: gitops.Escaped(c.Paths), Next: []string{"git airlock promote --resolve", "git merge " + e.Record.Ref("pending")},
			Message: fmt.Sprintf("commits of your own on %s and the agent's change the same lines", branch)}
	}
}

func (e *Engine) indexLocked() ledger.Hold {
	return ledger.Hold{Reason: ledger.IndexLocked, Message: "another git command holds the index lock; if none runs, it is left over from a crash",
		Next: []string{"rm " + gitops.Pasteable(e.Repo.GitDir+"/index.lock")}}
}

// locking returns a hold for a lock that another command should release in a moment. A lock that stays for several
// moments was left by a crash.
func locking(h ledger.Hold, before ledger.Outcome, now time.Time) remarks {
	r := remarks{[]ledger.Hold{h}, retrySoon}
	for _, b := range before.Of(ledger.IndexLocked) {
		if now.Sub(b.Since) > drainTime {
			r.retry = retryLater
		}
	}
	return r
}

// innerInvalid returns the hold for objects that the quarantine or the gate refused.
func innerInvalid(cause *inner.Invalid) remarks {
	next := []string{"git airlock visit -- git fsck", "git airlock visit"}
	switch {
	case cause.For != "":
		next = []string{"git airlock visit -- rm -rf -- " + gitops.Pasteable(cause.For)}
	case cause.Stalled:
		next = next[1:]
	}
	return remarks{[]ledger.Hold{{Reason: ledger.InnerInvalid, Message: cause.Reason, Next: next}}, retryLater}
}

// innerMain returns the hold for a workspace without a branch main.
func innerMain(names []inner.Ref) remarks {
	h := ledger.Hold{Reason: ledger.InnerMain, Message: "the inner repository has no branch main"}
	var shown []string
	for _, r := range names[:min(len(names), 10)] {
		shown = append(shown, gitops.Text(r.Name).String())
	}
	if len(shown) == 0 {
		h.Message += ", and no other ref"
		return remarks{[]ledger.Hold{h}, retryLater}
	}
	h.Message += "; it has " + strings.Join(shown, ", ")
	h.Next = []string{"git airlock visit -- git branch main " + gitops.Pasteable(names[0].Name)}
	return remarks{[]ledger.Hold{h}, retryLater}
}
