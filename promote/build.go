package promote

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// build makes outer-ready commits of what has not landed. They are built on the branch as it is now, so that they
// can land. If the user's own commits and the agent's conflict, what comes before the conflict is
// built, and if nothing does, all of it without the user's commits, for the user to merge.
func (c *cycle) build(ctx context.Context) error {
	if c.inner == "" {
		c.inner = c.accepted()
	}
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if err := p.aim(ctx); err != nil {
		return err
	}
	tail := c.ledger.tail
	c.outcome.Dropped, c.outcome.Waits = p.dropped, p.waits
	if len(p.chain) == 0 || len(tail) > 0 && !p.keeps(tail) {
		c.forget()
		tail = nil
	}
	if len(p.chain) == 0 {
		return nil
	}
	if err := c.openBridge(ctx); err != nil {
		return err
	}
	if err := p.build(ctx, tail); err != nil {
		return err
	}
	return c.judge(ctx, p.chain)
}

// build builds what is not pending yet, on the branch if that is possible.
func (p *plan) build(ctx context.Context, tail []pair) error {
	if p.outcome.Apart && len(tail) > 0 {
		return p.apart(ctx, tail)
	}
	if p.outcome.Onto != p.onto() {
		p.forget()
		tail = nil
	}
	return p.together(ctx, tail)
}

// onto is what new commits are built on: the branch, or where it was if it is gone.
func (c *cycle) onto() gitops.OID {
	if c.tip == "" {
		return c.promoted
	}
	return c.tip
}

// accepted is the newest inner commit that the quarantine accepted and that is known to be main's.
func (c *cycle) accepted() gitops.OID {
	if n := len(c.ledger.tail); n > 0 {
		return c.ledger.tail[n-1].inner
	}
	return c.ledger.last(c.base).inner
}

// forget drops what is pending, with its notes.
func (c *cycle) forget() {
	for _, dropped := range c.ledger.drop() {
		c.notes = append(c.notes, gitops.Note{Commit: dropped.outer})
	}
	c.outcome.Apart = false
}

// together builds on the branch what is not pending yet.
func (p *plan) together(ctx context.Context, tail []pair) error {
	links := p.after(tail)
	if len(links) == 0 {
		return nil
	}
	b, err := p.commits(ctx, links, tail, p.onto(), inPortions)
	if err != nil {
		return err
	}
	if b.late {
		p.outcome.Retry = unsettledPoll
	}
	if b.stopped != nil && b.lacking == nil {
		p.hold(b.conflict(ctx))
		if b.newestWhole() == "" {
			return p.separate(ctx, nil)
		}
	}
	p.outcome.Onto, p.outcome.Apart = p.onto(), false
	return b.store(ctx)
}

// apart looks again at what conflicted: it may not any more.
func (p *plan) apart(ctx context.Context, tail []pair) error {
	fresh := p.after(tail)
	if p.outcome.Onto == p.onto() && len(fresh) == 0 && p.options.Engine == "" {
		for _, h := range p.outcome.Holds {
			if h.Reason == Conflict {
				p.hold(h)
			}
		}
		return nil
	}
	b, err := p.commits(ctx, p.links, nil, p.onto(), merged)
	if err != nil {
		return err
	}
	if b.stopped != nil && b.lacking == nil && b.newestWhole() == "" {
		p.hold(b.conflict(ctx))
		return p.separate(ctx, tail)
	}
	p.forget()
	return p.together(ctx, nil)
}

// separate builds without the user's commits what is not pending yet: on what landed last, or, if that has
// changes of the user's in it with which the agent's conflict, on the newest landed commit that has not.
func (p *plan) separate(ctx context.Context, tail []pair) error {
	p.outcome.Onto, p.outcome.Apart = p.onto(), true
	links := p.after(tail)
	if len(links) == 0 {
		return nil
	}
	if tail == nil && p.last.merged {
		b, err := p.commits(ctx, links, nil, p.last.outer, merged)
		if err != nil {
			return err
		}
		if b.stopped == nil {
			return b.store(ctx)
		}
	}
	b, err := p.commits(ctx, links, tail, p.ledger.exact(p.base).outer, asTheyAre)
	if err != nil {
		return err
	}
	return b.store(ctx)
}

// store lets the gate look at the built commits and makes them pending. Where a merge stopped, or where one is invalid, that is
// those before.
func (b *builder) store(ctx context.Context) error {
	if b.lacking != nil {
		b.hold(b.notApplied(*b.lacking, b.stopped))
	}
	if b.stopped != nil {
		b.keep(b.newestWhole())
	}
	if len(b.pairs) == 0 {
		return nil
	}
	passed, err := b.check(ctx, b.pairs)
	var refused *gitops.Invalid
	switch {
	case errors.As(err, &refused):
		b.hold(b.innerInvalid(refused))
		for _, p := range b.pairs[passed:] {
			delete(b.done, p.inner)
		}
		if b.keep(b.newestWhole()); len(b.pairs) == 0 {
			return nil
		}
	case err != nil:
		return err
	}
	known, err := b.anchored(ctx)
	if err != nil {
		return err
	}
	b.fresh = delivery{tip: b.pairs[len(b.pairs)-1].outer, known: known}
	b.ledger.add(b.pairs)
	for i, p := range b.pairs {
		b.notes = append(b.notes, gitops.Note{Commit: p.outer, Text: b.note(p, b.authors[i], b.now)})
	}
	return nil
}

// anchored lists the outer commits on which the built ones rest and which a ref reaches: the user's git gc leaves those alone.
// What no ref reaches any more is handed over with the built commits.
func (b *builder) anchored(ctx context.Context) ([]gitops.OID, error) {
	refs := slices.DeleteFunc([]gitops.OID{b.base.outer, b.tip, b.promoted, b.pending}, func(id gitops.OID) bool { return id == "" })
	others := slices.DeleteFunc(slices.Collect(maps.Keys(b.outside)), func(id gitops.OID) bool { return slices.Contains(refs, id) })
	if len(others) == 0 {
		return refs, nil
	}
	loose, err := b.Repo.Unreached(ctx, others, refs)
	others = slices.DeleteFunc(others, func(id gitops.OID) bool { return slices.Contains(loose, id) })
	return append(refs, others...), err
}
