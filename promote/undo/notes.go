package undo

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/provenance"
)

// renoted describes how an operation changes the provenance notes. Notes that others have written since the reversed operation stay.
type renoted struct {
	from    []gitops.RefUpdate // the values of the notes refs before and after the operation that is reversed
	without []ledger.Pair      // commits that lose their notes, unless a ref of the user reaches them; also those that are not pending any more
	with    []ledger.Pair      // commits that get their notes back as they were before the reversed operation
	like    []gitops.OID       // notes commits to use again if they have the wanted notes
}

// updates returns the updates of the notes refs for an operation, and the new objects.
func (s *standing) updates(ctx context.Context, b *quarantine.Bridge, inspector *quarantine.Inspector, o operation.Operation, wanted renoted) (updates []gitops.RefUpdate, made []gitops.OID, err error) {
	removals, err := provenance.Removals(ctx, s.e.Repo, wanted.without, gitops.RefUpdate{Ref: s.e.Record.Branch, Old: o.Before, New: o.After})
	if err != nil || len(removals)+len(wanted.with) == 0 {
		return nil, nil, err
	}
	for _, ref := range []string{promote.NotesRef, promote.EgressRef} {
		now := s.refs[ref]
		before := gitops.OID("") // the value of the ref before the reversed operation
		base := now
		if i := slices.IndexFunc(wanted.from, func(u gitops.RefUpdate) bool { return u.Ref == ref }); i >= 0 {
			if before = wanted.from[i].Old; now == wanted.from[i].New && len(wanted.with) == 0 && len(removals) == len(wanted.without) {
				base = before // nothing was added since, and nothing stays
			}
		}
		notes, err := wanted.notes(ctx, inspector, before)
		if err != nil {
			return nil, nil, err
		}
		after, more, err := s.draft(ctx, b, inspector, base, slices.Concat(removals, notes), append(wanted.like, before))
		if err != nil {
			return nil, nil, err
		}
		if made = append(made, more...); after != now {
			updates = append(updates, gitops.RefUpdate{Ref: ref, Old: now, New: after})
		}
	}
	return updates, made, nil
}

// notes returns the notes that come back. before is the notes commit that has them.
func (wanted renoted) notes(ctx context.Context, inspector *quarantine.Inspector, before gitops.OID) (notes []quarantine.Note, err error) {
	if before == "" {
		return nil, nil
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
