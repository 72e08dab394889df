package promote

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// plan says what has not landed, and what it lands on.
type plan struct {
	*cycle
	links      []gitops.Link // not landed, parents first
	chain      []gitops.OID  // those of the first-parent history, oldest first
	last       pair          // what the first of them lands on
	supersedes []gitops.OID  // landed outer commits that it undoes, oldest first
}

// plan finds F, the newest commit of the inner first-parent history that has landed. What follows F is new. If F
// is not the last one that landed, the agent has rewritten its history: then the first new commit goes on top of
// the last landed one all the same, and says which ones it supersedes.
func (c *cycle) plan(ctx context.Context) (*plan, error) {
	p := &plan{cycle: c, last: c.ledger.last(c.base)}
	newest, err := c.q.FirstParents(ctx, c.inner, func(id gitops.OID) bool { _, landed := c.ledger.pairs[id]; return landed })
	if err != nil {
		return nil, err
	}
	found := c.base.inner // of a history of its own, too: it follows the root
	for _, id := range newest {
		if _, landed := c.ledger.pairs[id]; landed {
			found = id
			break
		}
		p.chain = append([]gitops.OID{id}, p.chain...)
	}
	if len(p.chain) == 0 {
		return p, nil
	}
	if found != p.last.inner {
		if err := p.undone(ctx); err != nil {
			return nil, err
		}
	}
	return p, p.history(ctx)
}

// undone lists the landed commits that the first new one undoes.
func (p *plan) undone(ctx context.Context) error {
	links, err := p.q.History(ctx, p.last.inner, []gitops.OID{p.chain[0]})
	for _, l := range links {
		landed, ok := p.ledger.pairs[l.Commit]
		if ok && l.Commit != p.base.inner && !p.ledger.superseded[landed.outer] {
			p.supersedes = append(p.supersedes, landed.outer)
		}
	}
	return err
}

// history lists what has not landed.
func (p *plan) history(ctx context.Context) error {
	links, err := p.q.History(ctx, p.inner, []gitops.OID{p.base.inner, p.last.inner})
	for _, l := range links {
		if _, landed := p.ledger.pairs[l.Commit]; !landed {
			p.links = append(p.links, l)
		}
	}
	return err
}

// reach lists those of the links that a commit reaches, itself included, in their order.
func (p *plan) reach(commit gitops.OID) []gitops.Link {
	wanted := map[gitops.OID]bool{commit: true}
	var reached []gitops.Link
	for i := len(p.links) - 1; i >= 0; i-- { // children before parents
		l := p.links[i]
		if !wanted[l.Commit] {
			continue
		}
		reached = append([]gitops.Link{l}, reached...)
		for _, parent := range l.Parents {
			wanted[parent] = true
		}
	}
	return reached
}

// keeps tells whether what is pending is still part of what the agent has.
func (p *plan) keeps(tail []pair) bool {
	waiting := map[gitops.OID]bool{}
	for _, l := range p.links {
		waiting[l.Commit] = true
	}
	first := false
	for _, t := range tail {
		if !waiting[t.inner] {
			return false
		}
		first = first || t.inner == p.chain[0]
	}
	return first
}

// after lists the links that are not pending yet.
func (p *plan) after(tail []pair) []gitops.Link {
	pending := map[gitops.OID]bool{}
	for _, t := range tail {
		pending[t.inner] = true
	}
	var links []gitops.Link
	for _, l := range p.links {
		if !pending[l.Commit] {
			links = append(links, l)
		}
	}
	return links
}
