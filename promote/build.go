package promote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// build makes outer-ready commits of what is new inside: the same trees, messages and author dates, the
// user's identity, parents mapped.
func (c *cycle) build(ctx context.Context) error {
	if c.inner == "" {
		return nil
	}
	p, err := c.plan(ctx)
	if err != nil || len(p.links) == 0 {
		return err
	}
	return p.commits(ctx)
}

// plan is what a build has to do.
type plan struct {
	*cycle
	links      []gitops.Link // to be built, parents first
	first      gitops.OID    // first new commit of the first-parent history
	last       pair          // what first lands on
	supersedes []gitops.OID  // landed outer commits that first undoes
}

// plan finds F, the newest commit of the inner first-parent history that has an image outside. What follows
// F is new. If F is not the last one that landed, the agent has rewritten its history: then the first new
// commit goes on top of the last landed one all the same, and says which ones it supersedes.
func (c *cycle) plan(ctx context.Context) (*plan, error) {
	chain, err := c.q.FirstParents(ctx, c.inner, func(id gitops.OID) bool { return c.ledger.images[id] != "" })
	if err != nil {
		return nil, err
	}
	p := &plan{cycle: c, last: c.ledger.last(c.base)}
	found := chain[len(chain)-1]
	if c.ledger.images[found] == "" {
		p.first, found = found, c.base.inner // a history of its own: it follows the root
	} else if len(chain) > 1 {
		p.first = chain[len(chain)-2]
	}
	if n := len(c.ledger.tail); n > 0 {
		if found == c.ledger.tail[n-1].inner {
			p.last = c.ledger.tail[n-1]
		} else {
			// What was pending is no longer what the agent has: it is built again from what landed.
			c.forget()
			return c.plan(ctx)
		}
	}
	if p.first == "" {
		return p, nil
	}
	if found != p.last.inner {
		if err := p.undone(ctx); err != nil {
			return nil, err
		}
	}
	return p, p.history(ctx)
}

// forget drops what is pending, with its notes.
func (c *cycle) forget() {
	for _, dropped := range c.ledger.drop() {
		c.notes = append(c.notes, gitops.Note{Commit: dropped.outer})
	}
}

// undone lists the landed commits that the first new one undoes, oldest first.
func (p *plan) undone(ctx context.Context) error {
	links, err := p.q.History(ctx, p.last.inner, []gitops.OID{p.first})
	for _, l := range links {
		outer := p.ledger.images[l.Commit]
		if outer != "" && l.Commit != p.base.inner && !p.ledger.superseded[outer] {
			p.supersedes = append(p.supersedes, outer)
		}
	}
	return err
}

// history lists what is to be built.
func (p *plan) history(ctx context.Context) error {
	links, err := p.q.History(ctx, p.inner, []gitops.OID{p.base.inner, p.last.inner})
	for _, l := range links {
		if p.ledger.images[l.Commit] == "" {
			p.links = append(p.links, l)
		}
	}
	return err
}

// parents are the images of a commit's parents, each once.
func (p *plan) parents(l gitops.Link, images map[gitops.OID]gitops.OID) ([]gitops.OID, error) {
	var outer []gitops.OID
	inner := l.Parents
	if l.Commit == p.first {
		outer = append(outer, p.last.outer)
		inner = inner[min(1, len(inner)):]
	}
	for _, i := range inner {
		o := images[i]
		if o == "" {
			o = p.ledger.images[i]
		}
		if o == "" {
			return nil, &gitops.Invalid{Reason: fmt.Sprintf("commit %s names the parent %s, which is no commit of this workspace", l.Commit, i)}
		}
		if !slices.Contains(outer, o) {
			outer = append(outer, o)
		}
	}
	return outer, nil
}

// commits builds the commits and keeps them in the quarantine.
func (p *plan) commits(ctx context.Context) error {
	names := make([]gitops.OID, len(p.links))
	for i, l := range p.links {
		names[i] = l.Commit
	}
	b := &builder{plan: p, now: time.Now(), images: map[gitops.OID]gitops.OID{}, taken: map[gitops.OID]bool{}}
	next := 0
	err := p.q.Commits(ctx, names, func(_ gitops.OID, inner gitops.Commit) error {
		next++
		return b.commit(p.links[next-1], inner)
	})
	if err != nil {
		return err
	}
	if err := p.q.StoreCommits(ctx, b.objects); err != nil {
		return fmt.Errorf("store built commits: %w", err)
	}
	p.ledger.add(b.pairs)
	p.fresh, p.cycle.notes = b.pairs, append(p.cycle.notes, b.notes...)
	return nil
}

// builder collects what commits makes.
type builder struct {
	*plan
	now     time.Time
	images  map[gitops.OID]gitops.OID
	taken   map[gitops.OID]bool
	objects [][]byte
	pairs   []pair
	notes   []gitops.Note
}

func (b *builder) commit(l gitops.Link, inner gitops.Commit) error {
	parents, err := b.parents(l, b.images)
	if err != nil {
		return err
	}
	author, written := gitops.SplitIdent(inner.Author)
	user := b.settings.User.String()
	outer := gitops.Commit{Tree: inner.Tree, Parents: parents, Author: user + " " + written, Encoding: inner.Encoding, Message: inner.Message}
	content, id := b.name(outer, user)
	p := pair{inner: l.Commit, outer: id}
	if l.Commit == b.first {
		p.supersedes = b.supersedes
	}
	b.images[l.Commit] = id
	b.objects, b.pairs = append(b.objects, content), append(b.pairs, p)
	b.notes = append(b.notes, gitops.Note{Commit: id, Text: b.note(p, author, b.now)})
	return nil
}

// name finishes a commit. Two inner commits that differ in nothing but what stays inside (the ghost's
// committer date, say) would become one; a second later they are two.
func (b *builder) name(c gitops.Commit, user string) ([]byte, gitops.OID) {
	for at := b.now; ; at = at.Add(time.Second) {
		c.Committer = fmt.Sprintf("%s %d %s", user, at.Unix(), at.Format("-0700"))
		content := c.Bytes()
		id := gitops.HashObject(b.Record.Format, "commit", content)
		if !b.taken[id] {
			b.taken[id] = true
			return content, id
		}
	}
}
