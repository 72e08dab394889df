package promote

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/disk"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// unwritable returns a [disk.UnwritableError] if a landing could not write.
func (e *Engine) unwritable() error {
	return disk.CheckWritable(e.Dir(), e.Repo.GitDir, e.Repo.CommonDir, filepath.Join(e.Repo.CommonDir, "objects"), filepath.Join(e.Repo.CommonDir, "refs"))
}

// noRoom reports whether an error was caused by a full file system or a used-up quota.
func (e *Engine) noRoom(err error) bool {
	return err != nil && (gitops.NoRoom(err) || disk.Full(e.Dir()))
}

// heldBesides returns further holds of pending commits for the outcome o of a cycle that a full disk ended early: those that can be found
// without writing.
func (e *Engine) heldBesides(ctx context.Context, f facts, o ledger.Outcome) []ledger.Hold {
	if f.refs.pending == "" {
		return nil
	}
	holds, err := hold.Positions(ctx, e.Repo, e.Record, f.refs.tip, f.refs.promoted)
	if err != nil {
		holds = nil // the full disk is reported in any case
	}
	holds = append(holds, e.review(ctx, f)...)
	if f.refs.tip == f.before.Onto {
		holds = append(holds, f.before.Of(ledger.Conflict)...)
		for _, h := range f.before.Of(ledger.Collision) {
			if hold.StillInTheWay(ctx, e.Repo, f.refs.tip, h.Paths) {
				holds = append(holds, h)
			}
		}
	}
	switch {
	case f.rules.broken != nil:
		holds = append(holds, hold.TeamUnreadable(f.rules.broken))
	case e.stillHeld(f):
		holds = append(holds, f.before.Of(ledger.Policy)...)
	}
	return slices.DeleteFunc(holds, func(h ledger.Hold) bool { return o.Held(h.Reason) })
}

// stillHeld reports whether a rule is known to hold a pending commit that the user has not dropped, under the current rules.
func (e *Engine) stillHeld(f facts) bool {
	results, err := f.rules.results()
	return err == nil && slices.ContainsFunc(f.ledger.Tail, func(t ledger.Pair) bool {
		return f.rules.decisions.DropOf(t.Inner) == nil && results.Of(t.Outer).Holds()
	})
}

func (e *Engine) diskFull(cause error) ledger.Hold {
	return disk.FullHold(e.Dir(), e.Repo.CommonDir, cause)
}
