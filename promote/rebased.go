package promote

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// recognize finds new commits that are rebased forms of landed ones, and marks them as landed in the ledger. They need no verdict and no
// outer commit, and the branch has what they change.
func (e *Engine) recognize(ctx context.Context, f facts, t taken, w *lazyBridge) error {
	if len(f.ledger.LeftOut()) == 0 {
		return nil
	}
	p, err := e.plan(ctx, f, t, map[gitops.OID]bool{})
	if err != nil || len(p.Chain) == 0 {
		return err
	}
	trees, err := e.treesOf(ctx, p, w)
	if err != nil {
		return err
	}
	forms, err := trees.Rebased(ctx, e.Repo, f.quarantine)
	if err != nil || len(forms) == 0 {
		return err
	}
	clear(f.reached)
	return f.ledger.AddRebased(forms)
}
