package promote

import (
	"context"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// delivered holds what the outer repository received in this cycle. No ref names any of it yet.
type delivered struct {
	notes gitops.OID // the drafted notes; empty if they do not change
}

// deliver copies the built commits with all their objects, and their notes, to the outer repository. Then it saves
// the verdicts and the ledger.
func (e *Engine) deliver(ctx context.Context, f facts, j judged, w *lazyBridge) (delivered, error) {
	var d delivered
	var notes []gitops.OID
	if len(j.notes) > 0 {
		if err := w.ready(ctx); err != nil {
			return d, err
		}
		var err error
		if d.notes, notes, err = w.bridge.DraftNotes(ctx, w.across, f.refs.notes, f.settings.User.String(), j.notes); err != nil {
			return d, err
		}
	}
	if j.fresh != "" || len(notes) > 0 {
		known, err := e.anchored(ctx, f, j.outside)
		if err != nil {
			return d, err
		}
		if err := w.bridge.Give(ctx, w.across, j.fresh, known, notes...); err != nil {
			return d, fmt.Errorf("copy commits to the repository: %w", err)
		}
	}
	f.ledger.SetTail(j.pending)
	if err := j.verdicts.Save(e.Dir(), f.ledger); err != nil {
		return d, err
	}
	return d, f.ledger.Save()
}

// noteUpdate returns the update of the notes ref that makes the drafted notes visible.
func (at refs) noteUpdate(d delivered) []gitops.RefUpdate {
	if d.notes == "" || d.notes == at.notes {
		return nil
	}
	return []gitops.RefUpdate{{Ref: NotesRef, Old: at.notes, New: d.notes}}
}

// noted returns the refs after that update.
func (at refs) noted(d delivered) refs {
	if d.notes != "" {
		at.notes = d.notes
	}
	return at
}

// announce makes the built commits pending, together with their notes, in one transaction. After it the commits are
// visible, and nothing has landed. It returns the refs after the transaction.
func (e *Engine) announce(ctx context.Context, l *ledger.Ledger, at refs, d delivered) (refs, error) {
	updates := at.noteUpdate(d)
	want := l.PendingTip()
	if want != at.pending {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("pending"), Old: at.pending, New: want})
	}
	if len(updates) == 0 {
		return at, nil
	}
	if err := e.Repo.UpdateRefs(ctx, "airlock: pending", updates...); err != nil {
		return at, fmt.Errorf("make commits pending: %w", err)
	}
	at.pending = want
	return at.noted(d), nil
}
