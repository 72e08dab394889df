package promote

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// An agent can come by commits of the branch it works for: it fetches them, or the user gives it some. Those that are outside
// already are their own images, and do not land once more.

// knows tells whether an inner commit has an image, and takes note of those that are outside.
func (p *plan) knows(id gitops.OID) bool {
	if p.ledger.has(id) {
		return true
	}
	if id != p.base.outer && !p.ledger.outer[id] {
		return false
	}
	p.brought[id] = true
	return true
}

// bringIn finds which of the links are commits of the branch, and takes them out. Whatever has come of the branch ends in the
// base, in what has landed, or in a root of its own; without one of these, nobody is asked.
func (p *plan) bringIn(ctx context.Context) error {
	rootless := func(l gitops.Link) bool { return len(l.Parents) == 0 }
	if len(p.links) == 0 || len(p.brought) == 0 && !slices.ContainsFunc(p.links, rootless) {
		return nil
	}
	var commits []gitops.OID
	for _, l := range p.links {
		commits = append(commits, l.Commit)
	}
	there, err := p.Repo.Present(ctx, commits)
	if err != nil || len(there) == 0 {
		return err
	}
	branch := []gitops.OID{p.onto(), p.promoted, p.base.outer}
	if p.tip != "" {
		past, err := p.Repo.Past(ctx, p.Record.Branch) // what the user threw away is not the agent's either
		if err != nil {
			return err
		}
		branch = append(branch, past...)
	}
	for id := range p.brought {
		branch = append(branch, id)
	}
	others, err := p.Repo.Unreached(ctx, there, branch)
	var failed *gitops.Error
	if errors.As(err, &failed) {
		return nil // something of theirs is missing: they are on no branch
	}
	if err != nil {
		return err
	}
	for _, id := range there {
		if !slices.Contains(others, id) {
			p.brought[id] = true
		}
	}
	p.links = slices.DeleteFunc(p.links, func(l gitops.Link) bool { return p.brought[l.Commit] })
	return nil
}

// goesOnFrom finds since when the changes of the first new commit count that builds on one of the branch's: since that one. If it
// is older than what landed last, it also undoes what has landed of the agent's since then, and nothing of the user's.
func (p *plan) goesOnFrom(ctx context.Context, found gitops.OID) error {
	p.since = found
	landed := p.last.outer
	beyond, err := p.Repo.Unreached(ctx, []gitops.OID{found}, []gitops.OID{landed})
	if err != nil || found == landed || len(beyond) > 0 {
		return err
	}
	undone, err := p.Repo.Unreached(ctx, []gitops.OID{landed}, []gitops.OID{found})
	for _, id := range slices.Backward(undone) {
		if p.ledger.outer[id] && !p.ledger.superseded[id] {
			p.supersedes = append(p.supersedes, id)
		}
	}
	if err != nil {
		return err
	}
	p.fork, err = p.landedBefore(ctx, found)
	return err
}

// landedBefore is the newest landed commit that a commit of the branch has, inside; the root if it has none.
func (p *plan) landedBefore(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	var outer []gitops.OID
	for _, l := range p.ledger.landed {
		outer = append(outer, l.outer)
	}
	after, err := p.Repo.Unreached(ctx, outer, []gitops.OID{commit})
	left := map[gitops.OID]bool{}
	for _, id := range after {
		left[id] = true
	}
	for _, l := range slices.Backward(p.ledger.landed) {
		if !left[l.outer] {
			return l.inner, err
		}
	}
	return p.base.inner, err
}

// baseTree is the tree from which the changes of a commit count: that of the commit before, for one that goes back behind what has
// landed with what the agent has done since.
func (b *builder) baseTree(ctx context.Context, l gitops.Link) (gitops.OID, error) {
	base, err := b.innerTree(ctx, b.before(l))
	if err != nil || b.fork == "" || l.Commit != b.chain[0] {
		return base, err
	}
	fork, err := b.innerTree(ctx, b.fork)
	if err != nil {
		return "", err
	}
	landed, err := b.innerTree(ctx, b.last.inner)
	if err != nil {
		return "", err
	}
	tree, conflicts, err := b.bridge.Merge(ctx, gitops.Merge{Base: fork, Ours: base, Theirs: landed})
	if conflicts != nil {
		return landed, err
	}
	return tree, err
}

// keepBrought takes out of what is undone what the agent has by another way.
func (p *plan) keepBrought(ctx context.Context) error {
	if len(p.brought) == 0 || len(p.supersedes) == 0 {
		return nil
	}
	var brought []gitops.OID
	for id := range p.brought {
		brought = append(brought, id)
	}
	left, err := p.Repo.Unreached(ctx, p.supersedes, brought)
	p.supersedes = slices.DeleteFunc(p.supersedes, func(id gitops.OID) bool { return !slices.Contains(left, id) })
	return err
}
