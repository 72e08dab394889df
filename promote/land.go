package promote

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// ErrNotPending says that a commit is none of those that wait on the line that lands.
var ErrNotPending = errors.New("not one of the pending commits")

// land lands what was built, unless something holds it: then it waits as pending. What lands with all that was built needs
// not be pending before: its notes are in the transaction that moves the branch.
func (c *cycle) land(ctx context.Context) error {
	to, err := c.landable(ctx)
	if n := len(c.ledger.tail); err != nil || to == "" || to != c.ledger.tail[n-1].outer {
		err = errors.Join(err, c.announce(ctx))
	}
	if err != nil || to == "" {
		return err
	}
	return c.landUpTo(ctx, to)
}

// landable is the newest commit that may land now; empty if none may.
func (c *cycle) landable(ctx context.Context) (gitops.OID, error) {
	if len(c.ledger.tail) == 0 {
		return "", nil
	}
	positions, err := Positions(ctx, c.Repo, c.Record, c.tip, c.promoted)
	if err != nil {
		return "", err
	}
	review := !c.settings.AutoLand && !c.options.Land
	c.holds = append(c.holds, positions...)
	if review {
		c.hold(c.review())
	}
	if len(positions) > 0 || review || c.outcome.Apart || c.outcome.Onto != c.tip {
		return "", nil
	}
	return c.target(), nil
}

// landUpTo lands a pending commit; if the user's files are in the way, the commits before that.
func (c *cycle) landUpTo(ctx context.Context, to gitops.OID) error {
	if c.inWay.stirs(c.Repo.Top, c.now) {
		c.outcome.Retry = unsettledPoll
		return c.announce(ctx)
	}
	if c.filter.pauses(c.now, c.config) {
		return errors.Join(c.announce(ctx), c.filter.err)
	}
	c.at("landing", 0, 0)
	if err := c.again(ctx, to); err != nil {
		return err
	}
	err := c.swing(ctx, to)
	c.filter = c.filter.after(err, c.now, c.config)
	if err == nil {
		return nil
	}
	if err := c.announce(ctx); err != nil {
		return err
	}
	var collision *gitops.CollisionError
	var locked *gitops.LockedError
	switch {
	case errors.As(err, &collision):
		c.inWay = inWay{paths: collision.Paths}
		c.hold(c.collision(ctx, collision.Paths))
		return c.landBefore(ctx, to, collision.Paths)
	case errors.Is(err, gitops.ErrIndexLocked):
		c.holdLocked(c.indexLocked())
		return nil
	case errors.As(err, &locked):
		c.holdLocked(refLocked(locked.Lock))
		return nil
	case errors.Is(err, gitops.ErrUnsettled), errors.Is(err, gitops.ErrElsewhere), errors.Is(err, gitops.ErrRefMoved):
		c.outcome.Retry = unsettledPoll
		return nil
	}
	return err
}

// landBefore lands the pending commits before the first one that changes one of the paths.
func (c *cycle) landBefore(ctx context.Context, to gitops.OID, paths []string) error {
	steps, err := c.Repo.Steps(ctx, c.tip, to)
	if err != nil {
		return err
	}
	touching, err := c.Repo.Steps(ctx, c.tip, to, paths[:min(len(paths), 100)]...)
	if err != nil {
		return err
	}
	end := len(steps) - 1
	if len(touching) > 0 {
		end = slices.Index(steps, touching[0])
	}
	// A path can be in the way without being changed itself (a folder of the user's where a file must be): then
	// one step less is tried at a time.
	for ; end > 0; end-- {
		err := c.swing(ctx, steps[end-1])
		var collision *gitops.CollisionError
		if !errors.As(err, &collision) {
			return c.settled(err)
		}
	}
	return nil
}

// settled leaves what another git command at work stopped to the next cycle.
func (c *cycle) settled(err error) error {
	if errors.Is(err, gitops.ErrUnsettled) || errors.Is(err, gitops.ErrElsewhere) ||
		errors.Is(err, gitops.ErrRefMoved) || errors.Is(err, gitops.ErrIndexLocked) {
		c.outcome.Retry = unsettledPoll
		return nil
	}
	return err
}

// swing lands one pending commit and all before it.
func (c *cycle) swing(ctx context.Context, to gitops.OID) error {
	refs := []gitops.RefUpdate{{Ref: c.Record.Ref("promoted"), Old: c.promoted, New: to}}
	all := to == c.ledger.tail[len(c.ledger.tail)-1].outer
	if all && c.pending != "" {
		refs = append(refs, gitops.RefUpdate{Ref: c.Record.Ref("pending"), Old: c.pending})
	}
	err := c.Repo.Land(ctx, gitops.Landing{
		Branch: c.Record.Branch, Old: c.tip, New: to, First: c.noteUpdate(), Refs: refs,
		Message: "airlock: land from " + c.Record.ID, Dir: c.Dir(), Config: c.config, Look: c.across,
	})
	if err != nil {
		return err
	}
	if all {
		c.pending = ""
	}
	c.noteDone()
	c.tip, c.promoted, c.outcome.Onto = to, to, to
	if c.held(Conflict) {
		c.outcome.Retry = unsettledPoll // what conflicts is now the first that waits
	}
	c.countLanded(c.ledger.land(to))
	return nil
}
