package promote

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/review"
)

// delivered holds what the outer repository received in this cycle. No ref names any of it yet.
type delivered struct {
	notes   map[string]gitops.OID // the drafted notes, by the refs that they change
	written decision.Written      // the verdicts among them
	op      gitops.OID            // the drafted operation, which lands all commits that may land; empty if there is none
}

// deliver copies the built commits with all their objects, and their notes, to the outer repository. Then it saves
// the gate's results and the ledger.
func (e *Engine) deliver(ctx context.Context, f facts, j judged, w *lazyBridge) (delivered, error) {
	d, notes, err := e.draft(ctx, f, j, w)
	if err != nil {
		return d, err
	}
	if j.fresh != "" || len(notes) > 0 {
		known, err := e.anchored(ctx, f, j.outside)
		if err != nil {
			return d, err
		}
		if lands := j.lands(); len(lands) > 0 && f.refs.tip != "" && f.refs.together(j.mayLand, j.pending[len(j.pending)-1].Outer) {
			if d.op, err = e.operation(ctx, f, f.refs, w, d, lands); err != nil {
				return d, err
			}
			notes = append(notes, d.op)
		}
		if err := w.bridge.Give(ctx, w.across, j.fresh, known, notes...); err != nil {
			return d, fmt.Errorf("copy commits to the repository: %w", err)
		}
	}
	if err := f.ledger.SetTail(j.pending); err != nil {
		return d, err
	}
	if e.Guard != nil && f.settings.Review == review.Land { // in the daemon, for which nobody waits
		j.results.AddPatches(ctx, e.Repo, f.ledger)
	}
	if err := j.results.Save(e.Dir(), f.ledger); err != nil {
		return d, err
	}
	return d, f.ledger.Save()
}

// draft builds the notes. It returns the new tips of their refs, and all new objects.
func (e *Engine) draft(ctx context.Context, f facts, j judged, w *lazyBridge) (d delivered, made []gitops.OID, err error) {
	if len(j.notes)+len(f.rules.decisions.Reviewed) == 0 {
		return d, nil, nil
	}
	if err := w.ready(ctx); err != nil {
		return d, nil, err
	}
	verdicts := decision.Writer{Inspector: w.across, Tip: f.refs.named[review.NotesRef], Patches: f.patches, Fresh: w.bridge, Decisions: f.rules.decisions, Pending: j.pending}
	if d.written, err = verdicts.Write(ctx); err != nil {
		return d, nil, fmt.Errorf("write verdicts: %w", err)
	}
	notes := map[string][]quarantine.Note{NotesRef: j.notes, review.NotesRef: d.written.Notes}
	windows := j.windows
	if e.Egress != nil && len(j.notes) > 0 {
		if windows == nil {
			windows, err = ledger.ReadWindows(ctx, e.Dir(), f.ledger, j.pending, e.Egress, false)
		}
		if err == nil {
			notes[EgressRef] = windows.Notes(j.notes, f.refs.named[EgressRef] != "")
		}
	}
	if err == nil {
		err = f.ledger.KeepFacts(j.notes, notes[EgressRef])
	}
	if err != nil {
		return d, nil, err
	}
	d.notes = map[string]gitops.OID{}
	for _, ref := range notesRefs {
		if len(notes[ref]) == 0 {
			continue
		}
		drafted, more, err := w.bridge.DraftNotes(ctx, w.across, f.refs.named[ref], f.settings.User.String(), notes[ref])
		if err != nil {
			return d, nil, err
		}
		d.notes[ref], made = drafted, append(made, more...)
	}
	if len(notes[EgressRef]) > 0 {
		err = windows.Save(e.Dir())
	}
	return d, made, err
}

// operation makes the commit that records the landing of pending pairs, with the notes that become visible in the same transaction.
func (e *Engine) operation(ctx context.Context, f facts, at refs, w *lazyBridge, d delivered, pairs []ledger.Pair) (gitops.OID, error) {
	if err := w.ready(ctx); err != nil {
		return "", err
	}
	return operation.Append(ctx, w.bridge, w.across, at.ops, operation.Operation{Kind: operation.Land, At: ledger.Timestamp(f.now),
		Branch: gitops.AnyName(e.Record.Branch), Before: at.tip, After: pairs[len(pairs)-1].Outer, PromotedBefore: at.promoted,
		Notes: at.noteUpdate(d, notesRefs[:2]), Landed: pairs}, f.settings.User.String())
}

// EgressRef is the ref of the notes that describe what the prison reached before a commit.
const EgressRef = "refs/notes/airlock-egress"

// notesRefs are the refs of notes that become visible with a landing. The last one has verdicts, which stay when the landing is undone.
var notesRefs = []string{NotesRef, EgressRef, review.NotesRef}

// noteUpdate returns the updates of some notes refs that make the drafted notes visible.
func (at refs) noteUpdate(d delivered, refs []string) (updates []gitops.RefUpdate) {
	for _, ref := range refs {
		if drafted := d.notes[ref]; drafted != at.named[ref] && drafted != "" {
			updates = append(updates, gitops.RefUpdate{Ref: ref, Old: at.named[ref], New: drafted})
		}
	}
	return updates
}

// announce makes the built commits pending, together with their notes, in one transaction. After it the commits are
// visible, and nothing has landed. It returns the refs after the transaction.
func (e *Engine) announce(ctx context.Context, l *ledger.Ledger, at refs, d delivered) (refs, error) {
	updates := at.noteUpdate(d, notesRefs)
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
	at.pending, at.named = want, maps.Clone(at.named)
	maps.Copy(at.named, d.notes)
	return at, nil
}

// release ends the protection of handed-over objects from the user's git gc. The caller knows that refs reach the objects now, or that
// nothing needs them.
func (e *Engine) release() error {
	if err := quarantine.Release(e.Repo, e.Dir()); err != nil {
		return fmt.Errorf("end the hand-over of objects: %w", err)
	}
	return nil
}

// heal copies objects of the airlock to the repository again if the repository has lost them.
func (e *Engine) heal(ctx context.Context) error {
	h, err := quarantine.OpenHandover(e.Repo, e.Dir())
	if err != nil {
		return err
	}
	again, err := h.Heal(ctx, e.Record.Base, e.Record.Ref("promoted"), e.Record.Ref("pending"), NotesRef, EgressRef)
	if again > 0 {
		e.ledgers = ledger.Cache{}
		e.progress("restoring objects that the repository has lost", again, again)
	}
	if err != nil {
		return fmt.Errorf("restore objects that the repository has lost: %w", err)
	}
	return nil
}

// redeliver copies commits that were pending before this cycle once more when the last of them land. In that transaction the branch gets
// the commits and the ref pending is removed. A git gc that reads the branch before and the ref pending after the transaction finds the
// commits on neither. The copy includes the commits that landed earlier, while the ref pending stayed.
func (e *Engine) redeliver(ctx context.Context, f facts, w *lazyBridge, at refs, to gitops.OID) error {
	if at.pending == "" {
		return nil
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	known := []gitops.OID{at.tip, at.promoted, f.ledger.Base.Outer}
	if f.before.Onto == at.tip && f.before.Uncopied != "" {
		known = []gitops.OID{f.before.Uncopied, f.ledger.Base.Outer}
	}
	if err := w.bridge.Again(ctx, to, known); err != nil {
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
