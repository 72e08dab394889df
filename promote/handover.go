package promote

import (
	"context"
	"fmt"
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
func (c *cycle) heal(ctx context.Context) error {
	h, err := c.Repo.Handover(c.Dir())
	if err != nil {
		return err
	}
	again, err := h.Heal(ctx, c.Record.Base, c.Record.Ref("promoted"), c.Record.Ref("pending"), NotesRef)
	if again > 0 {
		c.recalled = nil
		c.at("putting back objects that the repository has lost", again, again)
	}
	if err != nil {
		return fmt.Errorf("hand over again what the repository has lost: %w", err)
	}
	return nil
}
