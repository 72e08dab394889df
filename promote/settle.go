package promote

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// settle takes note of pending commits that the user merged or fast-forwarded to by hand: those that the branch reaches, or has
// reached before the user went back or amended one, as they may have done all of that since the last cycle. It need not be all
// up to one of them: of a merge that waits, one side can have been taken without the other.
func (c *cycle) settle(ctx context.Context) error {
	if len(c.ledger.tail) == 0 || c.tip == "" {
		return nil
	}
	past, err := c.Repo.Past(ctx, c.Record.Branch)
	if err != nil {
		return err
	}
	left, err := c.Repo.Unreached(ctx, []gitops.OID{c.pending}, append(past, c.tip))
	if err != nil {
		return err
	}
	var taken []pair
	for _, t := range c.ledger.tail {
		if !slices.Contains(left, t.outer) {
			taken = append(taken, t)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	onLine, err := c.newestLast(ctx, taken)
	if err != nil {
		return err
	}
	c.ledger.take(taken, onLine)
	if err := c.ledger.save(); err != nil { // the refs say how much of it counts
		return err
	}
	c.countLanded(len(taken))
	return c.moveOn(ctx)
}

// newestLast puts the newest commit of the line that lands last: from there it goes on. It tells whether there is one.
func (c *cycle) newestLast(ctx context.Context, taken []pair) (bool, error) {
	steps, err := c.Repo.Steps(ctx, c.promoted, c.pending)
	if err != nil {
		return false, err
	}
	for i, t := range slices.Backward(taken) {
		if slices.Contains(steps, t.outer) {
			copy(taken[i:], taken[i+1:])
			taken[len(taken)-1] = t
			return true, nil
		}
	}
	return false, nil
}

// moveOn moves the airlock's refs to where the ledger is.
func (c *cycle) moveOn(ctx context.Context) error {
	var updates []gitops.RefUpdate
	last := c.ledger.last(c.base).outer
	if last != c.promoted {
		updates = append(updates, gitops.RefUpdate{Ref: c.Record.Ref("promoted"), Old: c.promoted, New: last})
	}
	if len(c.ledger.tail) == 0 {
		updates = append(updates, gitops.RefUpdate{Ref: c.Record.Ref("pending"), Old: c.pending})
		c.pending = ""
	}
	c.promoted = last
	if len(updates) == 0 {
		return nil
	}
	return c.Repo.UpdateRefs(ctx, "airlock: landed by hand", updates...)
}
