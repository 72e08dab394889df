package promote

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// plan says what has not landed, and what it lands on.
type plan struct {
	*cycle
	links []gitops.Link // not landed, parents first
	chain []gitops.OID  // those of the first-parent history, oldest first
	last  pair          // what the first of them lands on
	since gitops.OID    // what its changes count from: that, inside, or a commit of the branch
	fork  gitops.OID    // what landed last before that one, if more has landed since; else empty

	brought    map[gitops.OID]bool // commits of the branch that the agent has
	dropped    int                 // how many new commits the user leaves out, and with them what they merged; they are in no chain
	waits      int                 // how many are to land
	supersedes []gitops.OID        // landed outer commits that it undoes, oldest first
}

// plan finds F, the newest commit of the inner first-parent history that has landed. What follows F is new. If F
// is not the last one that landed, the agent has rewritten its history: then the first new commit goes on top of
// the last landed one all the same, and says which ones it supersedes.
func (c *cycle) plan(ctx context.Context) (*plan, error) {
	p := &plan{cycle: c, last: c.ledger.last(c.base), brought: map[gitops.OID]bool{}}
	p.since = p.last.inner
	if err := errors.Join(p.history(ctx), p.bringIn(ctx)); err != nil {
		return nil, err
	}
	var found gitops.OID
	p.chain, found = p.follow(p.inner)
	p.arrange()
	p.leaveOut()
	switch {
	case len(p.chain) == 0 || found == p.last.inner:
		return p, nil
	case p.brought[found]:
		return p, p.goesOnFrom(ctx, found)
	}
	return p, errors.Join(p.undone(ctx), p.keepBrought(ctx))
}

// arrange orders the links so that each commit of the chain comes right after what it reaches beside those before it:
// whatever comes before a commit of the chain lands with it, and nothing else.
func (p *plan) arrange() {
	waiting := map[gitops.OID]gitops.Link{}
	for _, l := range p.links {
		waiting[l.Commit] = l
	}
	p.links = p.links[:0]
	for _, id := range p.chain {
		for todo := []gitops.OID{id}; len(todo) > 0; {
			l := waiting[todo[len(todo)-1]]
			before := len(todo)
			for _, parent := range l.Parents {
				if _, there := waiting[parent]; there {
					todo = append(todo, parent)
				}
			}
			if len(todo) > before {
				continue // its parents first
			}
			todo = todo[:before-1]
			if l.Commit != "" { // else it was another one's parent, too
				p.links = append(p.links, l)
				delete(waiting, l.Commit)
			}
		}
	}
}

// leaveOut takes out of the chain what the user has dropped, and out of the links what nothing that lands reaches without
// the merges among that.
func (p *plan) leaveOut() {
	p.chain = slices.DeleteFunc(p.chain, p.drops)
	wanted := map[gitops.OID]bool{}
	for _, id := range p.chain {
		wanted[id] = true
	}
	var kept []gitops.Link
	for _, l := range slices.Backward(p.links) {
		switch {
		case !wanted[l.Commit]:
			continue
		case p.drops(l.Commit):
			l.Parents = l.Parents[:min(1, len(l.Parents))]
		default:
			p.waits++
		}
		for _, parent := range l.Parents {
			wanted[parent] = true
		}
		kept = append(kept, l)
	}
	slices.Reverse(kept)
	p.dropped = len(p.links) - p.waits
	p.links = kept
}

// follow lists what is new of a commit's first-parent history, the oldest first, and returns the commit that comes
// before: the root if it is a history of its own.
func (p *plan) follow(tip gitops.OID) (chain []gitops.OID, found gitops.OID) {
	parents := map[gitops.OID][]gitops.OID{}
	for _, l := range p.links {
		parents[l.Commit] = l.Parents
	}
	found = tip
	for of, waiting := parents[found]; waiting; of, waiting = parents[found] {
		chain = append(chain, found)
		if found = p.base.inner; len(of) > 0 {
			found = of[0]
		}
	}
	slices.Reverse(chain)
	return chain, found
}

// drops tells whether the user leaves an inner commit out.
func (p *plan) drops(inner gitops.OID) bool { return p.gate.decided.dropped(inner) != nil }

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
	links, err := p.inside.History(ctx, p.inner, p.knows, p.settings.Limits)
	if p.links = links; !errors.Is(err, gitops.ErrMany) {
		return err
	}
	links, err = p.q.History(ctx, p.inner, []gitops.OID{p.base.inner, p.last.inner})
	for _, l := range links {
		if !p.ledger.has(l.Commit) {
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
		reached = append(reached, l)
		for _, parent := range l.Parents {
			wanted[parent] = true
		}
	}
	slices.Reverse(reached)
	return reached
}

// keeps tells whether what is pending is still part of what the agent has, and was built onto the branch at the
// same commit: that one is unlike the others, which have the parents that they have inside.
func (p *plan) keeps(tail []pair) bool {
	waiting := map[gitops.OID]bool{}
	for _, l := range p.links {
		waiting[l.Commit] = true
	}
	for _, t := range tail {
		if !waiting[t.inner] || p.drops(t.inner) {
			return false
		}
	}
	chain, _ := p.follow(tail[len(tail)-1].inner)
	chain = slices.DeleteFunc(chain, p.drops)
	return chain[0] == p.chain[0]
}

// after lists the links that are not pending yet, unless all of them are dropped.
func (p *plan) after(tail []pair) []gitops.Link {
	pending := map[gitops.OID]bool{}
	for _, t := range tail {
		pending[t.inner] = true
	}
	var links []gitops.Link
	fresh := false
	for _, l := range p.links {
		if !pending[l.Commit] {
			links = append(links, l)
			fresh = fresh || !p.drops(l.Commit)
		}
	}
	if !fresh {
		return nil
	}
	return links
}
