package promote

import (
	"context"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
)

// delivery is what was built and is to be given to the outer repository.
type delivery struct {
	tip   gitops.OID   // empty if nothing was built
	known []gitops.OID // outer commits that it builds on
}

// deliver gives the outer repository the built commits with all that they hold, and their notes; no ref names any of it
// yet. What was said of them and what they are images of is written down.
func (c *cycle) deliver(ctx context.Context) error {
	var notes []gitops.OID
	if len(c.notes) > 0 {
		if err := c.openBridge(ctx); err != nil {
			return err
		}
		var err error
		if c.drafted, notes, err = c.bridge.DraftNotes(ctx, c.across, c.noted, c.settings.User.String(), c.notes); err != nil {
			return err
		}
	}
	if c.fresh.tip != "" || len(notes) > 0 {
		if err := c.bridge.Give(ctx, c.across, c.fresh.tip, c.fresh.known, notes...); err != nil {
			return fmt.Errorf("give commits to the repository: %w", err)
		}
	}
	if err := c.gate.verdicts.save(c.Dir(), c.ledger); err != nil {
		return err
	}
	return c.ledger.save()
}

// again gives the outer repository once more what was pending before this cycle, when it lands: the ref that reaches it goes as
// another one comes, and a git gc may read the one too late and the other too early.
func (c *cycle) again(ctx context.Context, to gitops.OID) error {
	if c.pending == "" {
		return nil
	}
	if err := c.openBridge(ctx); err != nil {
		return err
	}
	if err := c.bridge.Again(ctx, to, []gitops.OID{c.tip, c.promoted, c.base.outer}); err != nil {
		return fmt.Errorf("give pending commits to the repository: %w", err)
	}
	return nil
}

// noteUpdate is the move of the notes ref that makes the drafted notes visible.
func (c *cycle) noteUpdate() []gitops.RefUpdate {
	if c.drafted == "" || c.drafted == c.noted {
		return nil
	}
	return []gitops.RefUpdate{{Ref: NotesRef, Old: c.noted, New: c.drafted}}
}

// noteDone takes note of that.
func (c *cycle) noteDone() {
	if c.drafted != "" {
		c.noted = c.drafted
	}
}

// announce makes the built commits pending, with their notes: one transaction, after which they can be seen
// and nothing has landed.
func (c *cycle) announce(ctx context.Context) error {
	want := gitops.OID("")
	if n := len(c.ledger.tail); n > 0 {
		want = c.ledger.tail[n-1].outer
	}
	updates := c.noteUpdate()
	if want != c.pending {
		updates = append(updates, gitops.RefUpdate{Ref: c.Record.Ref("pending"), Old: c.pending, New: want})
	}
	if len(updates) == 0 {
		return nil
	}
	if err := c.Repo.UpdateRefs(ctx, "airlock: pending", updates...); err != nil {
		return fmt.Errorf("make commits pending: %w", err)
	}
	c.pending = want
	c.noteDone()
	return nil
}
