package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// ErrNoConflict says that nothing waits for a conflict to be resolved.
var ErrNoConflict = errors.New("no conflict is held")

// Resolve starts a merge of the first pending commit that conflicts, in the user's working tree, as git merge does:
// once they commit, that commit counts as landed and the rest goes on. It returns the commit.
func (e *Engine) Resolve(ctx context.Context) (gitops.OID, error) {
	unlock, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return "", err
	}
	defer unlock()
	outcome, err := readOutcome(e.Dir())
	if err != nil {
		return "", err
	}
	c := &cycle{Engine: e, outcome: outcome}
	if err := c.look(ctx); err != nil {
		return "", err
	}
	if !outcome.Apart || c.pending == "" {
		return "", ErrNoConflict
	}
	positions, err := Positions(ctx, e.Repo, e.Record, c.tip, c.promoted)
	if err != nil {
		return "", err
	}
	if len(positions) > 0 {
		return "", fmt.Errorf("%s: %s", positions[0].Reason, positions[0].Message)
	}
	common, err := e.Repo.MergeBase(ctx, c.tip, c.pending)
	if err != nil {
		return "", err
	}
	steps, err := e.Repo.Steps(ctx, common, c.pending)
	if err != nil {
		return "", err
	}
	for _, step := range steps {
		// What landed before and the user has rewritten since is not to be merged once more.
		if slices.ContainsFunc(c.ledger.tail, func(p pair) bool { return p.outer == step }) {
			return step, e.Repo.StartMerge(ctx, step)
		}
	}
	return "", ErrNoConflict
}
