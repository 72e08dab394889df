package promote

import (
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// release lets the user's git gc have what was handed over: the refs that reach it have moved, or it is of no use.
func (e *Engine) release() error {
	h, err := e.Repo.Handover(e.Dir())
	if err == nil {
		err = h.Release()
	}
	if err != nil {
		return fmt.Errorf("end the hand-over of objects: %w", err)
	}
	return nil
}

// heal hands over again what the repository lost of the airlock's objects.
func (e *Engine) heal(ctx context.Context) error {
	h, err := e.Repo.Handover(e.Dir())
	if err != nil {
		return err
	}
	again, err := h.Heal(ctx, e.Record.Base, e.Record.Ref("promoted"), e.Record.Ref("pending"), NotesRef)
	if again > 0 {
		e.ledgers = ledger.Cache{}
		e.progress("putting back objects that the repository has lost", again, again)
	}
	if err != nil {
		return fmt.Errorf("hand over again what the repository has lost: %w", err)
	}
	return nil
}

// again gives the outer repository once more what was pending before this cycle, when it lands: the ref that reaches it
// goes as another one comes, and a git gc may read the one too late and the other too early.
func (e *Engine) again(ctx context.Context, f facts, w *bench, at refs, to gitops.OID) error {
	if at.pending == "" {
		return nil
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	if err := w.bridge.Again(ctx, to, []gitops.OID{at.tip, at.promoted, f.ledger.Base.Outer}); err != nil {
		return fmt.Errorf("give pending commits to the repository: %w", err)
	}
	return nil
}

// anchored lists the outer commits on which the built ones rest and which a ref reaches: the user's git gc leaves those
// alone. What no ref reaches any more is handed over with the built commits.
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
