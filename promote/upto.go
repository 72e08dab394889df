package promote

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// aim finds the inner commit that the last one to be landed stands for, as long as it has the name by which it was asked for.
func (c *cycle) aim(ctx context.Context) error {
	if c.options.UpTo == "" || *c.options.upTo != "" {
		return nil
	}
	revision, _ := c.Repo.Commit(ctx, c.options.UpTo)
	for _, pairs := range [][]pair{c.ledger.tail, c.ledger.landed} {
		if i := slices.IndexFunc(pairs, func(p pair) bool { return p.outer == revision }); i >= 0 {
			*c.options.upTo = pairs[i].inner
		}
	}
	return nil
}

// aim finds it among the inner commits, and makes sure that it is one at which a landing can end.
func (p *plan) aim(ctx context.Context) error {
	if p.options.UpTo == "" {
		return nil
	}
	if *p.options.upTo == "" {
		*p.options.upTo = p.landedAs(p.options.UpTo)
	}
	if *p.options.upTo == "" {
		link, _, err := p.find(ctx, p.options.UpTo)
		if err != nil {
			return err
		}
		*p.options.upTo = link.Commit
	}
	if inner := *p.options.upTo; !p.ledger.has(inner) && !slices.Contains(p.chain, inner) {
		return fmt.Errorf("commit %q: %w", gitops.Escape(p.options.UpTo), ErrNotPending)
	}
	return nil
}

// landedAs is the one inner commit that has landed and has such a name; empty if there is none.
func (c *cycle) landedAs(name string) gitops.OID {
	found := gitops.OID("")
	if !Digits(name) {
		return found
	}
	for _, p := range c.ledger.landed {
		if !strings.HasPrefix(string(p.inner), strings.ToLower(name)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = p.inner
	}
	return found
}

// target is the newest commit that is to land: as far as the rules let, and no further than was asked for.
func (c *cycle) target() gitops.OID {
	if c.options.UpTo == "" || c.mayLand == "" {
		return c.mayLand
	}
	if c.ledger.has(*c.options.upTo) {
		return "" // it has landed
	}
	for _, t := range c.ledger.tail { // the chain's are in their order
		if t.inner == *c.options.upTo {
			return t.outer
		}
		if t.outer == c.mayLand {
			break // it is held, or built later
		}
	}
	return c.mayLand
}
