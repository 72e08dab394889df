package undo

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// renoted describes how an operation changes the provenance notes. Notes that others have written since the reversed operation stay.
type renoted struct {
	from    []gitops.RefUpdate // the values of the notes refs before and after the operation that is reversed
	without []ledger.Pair      // commits whose notes are removed, including those that are not pending any more
	with    []ledger.Pair      // commits that get their notes back as they were before the reversed operation
	like    []gitops.OID       // notes commits to use again if they have the wanted notes
}

// updates returns the updates of the notes refs, and the new objects.
func (s *standing) updates(ctx context.Context, b *quarantine.Bridge, inspector *quarantine.Inspector, wanted renoted) (updates []gitops.RefUpdate, made []gitops.OID, err error) {
	if len(wanted.without)+len(wanted.with) == 0 {
		return nil, nil, nil
	}
	for _, ref := range []string{promote.NotesRef, promote.EgressRef} {
		now := s.refs[ref]
		before := gitops.OID("") // the value of the ref before the reversed operation
		base := now
		if i := slices.IndexFunc(wanted.from, func(u gitops.RefUpdate) bool { return u.Ref == ref }); i >= 0 {
			if before = wanted.from[i].Old; now == wanted.from[i].New && len(wanted.with) == 0 {
				base = before // nothing was added since
			}
		}
		notes, err := wanted.notes(ctx, inspector, before)
		if err != nil {
			return nil, nil, err
		}
		after, more, err := s.draft(ctx, b, inspector, base, notes, append(wanted.like, before))
		if err != nil {
			return nil, nil, err
		}
		if made = append(made, more...); after != now {
			updates = append(updates, gitops.RefUpdate{Ref: ref, Old: now, New: after})
		}
	}
	return updates, made, nil
}

// notes returns the removals, and the notes that come back. before is the notes commit that has the latter.
func (wanted renoted) notes(ctx context.Context, inspector *quarantine.Inspector, before gitops.OID) (notes []quarantine.Note, err error) {
	for _, p := range wanted.without {
		notes = append(notes, quarantine.Note{Commit: p.Outer})
	}
	if before == "" {
		return notes, nil
	}
	for _, p := range wanted.with {
		text, err := inspector.NoteOf(ctx, before, p.Outer)
		if err != nil {
			return nil, err
		}
		if len(text) > 0 {
			notes = append(notes, quarantine.Note{Commit: p.Outer, Text: string(text)})
		}
	}
	return notes, nil
}

// draft makes a notes commit with some changes, and returns it with the new objects. If one of the commits in others has the same notes, draft
// returns that commit, and no objects.
func (s *standing) draft(ctx context.Context, b *quarantine.Bridge, inspector *quarantine.Inspector, base gitops.OID, notes []quarantine.Note, others []gitops.OID) (gitops.OID, []gitops.OID, error) {
	if base == "" && !slices.ContainsFunc(notes, func(n quarantine.Note) bool { return n.Text != "" }) {
		return "", nil, nil
	}
	after, made, err := b.DraftNotes(ctx, inspector, base, s.Settings.User.String(), notes)
	if err != nil || len(made) == 0 {
		return after, nil, err
	}
	drafted, err := inspector.Commit(ctx, after)
	if err != nil {
		return "", nil, err
	}
	for _, id := range others {
		if id == "" {
			continue
		}
		if c, err := inspector.Commit(ctx, id); err == nil && c.Tree == drafted.Tree {
			return id, nil, nil
		}
	}
	return after, made, nil
}
