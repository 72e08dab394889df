package promote

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// note is the provenance of one landed commit, in the format of version 1.
func (c *cycle) note(p pair, innerAuthor string, now time.Time) string {
	r := c.Record
	tree := p.tree()
	if r.Part {
		tree = mergedTree // with what was left out
	}
	var b strings.Builder
	fmt.Fprintf(&b, "landed by airlock %s\n\n", r.ID)
	for _, line := range []struct {
		key   string
		value any
	}{
		{"Version", 1},
		{"Commit", p.outer},
		{"Session", r.Session},
		{"Inner-Commit", p.inner},
		{"Inner-Author", gitops.Escape(innerAuthor)},
		{"Base", r.Base},
		{"Backend", r.Backend},
		{"Isolation", fmt.Sprintf("runtime=%s network=%s uid=%d", orNone(r.Isolation.Runtime), r.Isolation.Network, r.Phantom.UID)},
		{"Tree", tree},
		{"Policy", c.gate.verdicts.of(p.outer).word()},
		{"Landed-At", now.UTC().Format(time.RFC3339)},
	} {
		fmt.Fprintf(&b, "Airlock-%s: %v\n", line.key, line.value)
	}
	for _, s := range p.supersedes {
		fmt.Fprintf(&b, "Airlock-Supersedes: %s\n", s)
	}
	return b.String()
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// announce makes the built commits pending, with their notes: one transaction, after which they can be seen
// and nothing has landed.
func (c *cycle) announce(ctx context.Context) error {
	want := gitops.OID("")
	if n := len(c.ledger.tail); n > 0 {
		want = c.ledger.tail[n-1].outer
	}
	if err := c.gate.verdicts.save(c.Dir(), c.ledger); err != nil {
		return err
	}
	if err := c.ledger.save(); err != nil || want == c.pending && len(c.notes) == 0 {
		return err
	}
	updates := []gitops.RefUpdate{{Ref: c.Record.Ref("pending"), Old: c.pending, New: want}}
	if len(c.notes) > 0 {
		draft := c.Record.Ref("draft")
		old, notes, err := c.Repo.DraftNotes(ctx, NotesRef, draft, c.settings.User.String(), c.notes)
		if err != nil {
			return err
		}
		updates = append(updates, gitops.RefUpdate{Ref: NotesRef, Old: old, New: notes}, gitops.RefUpdate{Ref: draft, Old: notes})
	}
	if err := c.Repo.UpdateRefs(ctx, "airlock: pending", updates...); err != nil {
		return fmt.Errorf("make commits pending: %w", err)
	}
	c.pending = want
	return nil
}
