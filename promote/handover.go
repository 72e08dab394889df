package promote

import (
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// release ends the protection of handed-over objects from the user's git gc: refs reach the objects now, or nothing
// needs them.
func (e *Engine) release() error {
	h, err := quarantine.OpenHandover(e.Repo, e.Dir())
	if err == nil {
		err = h.Release()
	}
	if err != nil {
		return fmt.Errorf("end the hand-over of objects: %w", err)
	}
	return nil
}

// heal hands over objects of the airlock again if the repository has lost them.
func (e *Engine) heal(ctx context.Context) error {
	h, err := quarantine.OpenHandover(e.Repo, e.Dir())
	if err != nil {
		return err
	}
	again, err := h.Heal(ctx, e.Record.Base, e.Record.Ref("promoted"), e.Record.Ref("pending"), NotesRef)
	if again > 0 {
		e.ledgers = ledger.Cache{}
		e.progress("restoring objects that the repository has lost", again, again)
	}
	if err != nil {
		return fmt.Errorf("restore objects that the repository has lost: %w", err)
	}
	return nil
}

// redeliver copies commits that were pending before this cycle once more when they land. The ref pending goes as the
// branch comes, and a git gc may read the one ref too late and the other too early.
func (e *Engine) redeliver(ctx context.Context, f facts, w *lazyBridge, at refs, to gitops.OID) error {
	if at.pending == "" {
		return nil
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	if err := w.bridge.Again(ctx, to, []gitops.OID{at.tip, at.promoted, f.ledger.Base.Outer}); err != nil {
		return fmt.Errorf("copy pending commits to the repository: %w", err)
	}
	return nil
}

// anchored lists the outer commits below the built ones that a ref reaches, which the user's git gc keeps. Commits
// that no ref reaches any more are handed over together with the built ones.
func (e *Engine) anchored(ctx context.Context, f facts, outside []gitops.OID) ([]gitops.OID, error) {
	named := slices.DeleteFunc([]gitops.OID{f.ledger.Base.Outer, f.refs.tip, f.refs.promoted, f.refs.pending}, func(id gitops.OID) bool { return id == "" })
	others := slices.DeleteFunc(slices.Clone(outside), func(id gitops.OID) bool { return slices.Contains(named, id) })
	if len(others) == 0 {
		return named, nil
	}
	loose, err := e.Repo.Unreached(ctx, others, named)
	others = slices.DeleteFunc(others, func(id gitops.OID) bool { return slices.Contains(loose, id) })
	return append(named, others...), err
}
