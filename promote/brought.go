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

// goesOnFrom finds since when the changes of the first new commit count that builds on one of the branch's: since that one, if it
// is not older than what landed last; else since what landed last, so that it undoes what it does without.
func (p *plan) goesOnFrom(ctx context.Context, found gitops.OID) error {
	p.since = found
	landed := p.last.outer
	beyond, err := p.Repo.Unreached(ctx, []gitops.OID{found}, []gitops.OID{landed})
	if err != nil || found == landed || len(beyond) > 0 {
		return err
	}
	p.since = landed
	undone, err := p.Repo.Unreached(ctx, []gitops.OID{landed}, []gitops.OID{found})
	for _, id := range slices.Backward(undone) {
		if p.ledger.outer[id] && !p.ledger.superseded[id] {
			p.supersedes = append(p.supersedes, id)
		}
	}
	return err
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
