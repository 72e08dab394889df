package promote

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// The user may rebase landed commits, or take some off the branch. A commit of the agent's that builds on one of those must not
// bring it back as an ancestor: a secret that the user has removed would be pushed again.

// stand finds the images of landed commits that the branch does not have any more and that the links name as parents: the commit
// that the user has in the place of such a one, or else what its parent has become.
func (b *builder) stand(ctx context.Context, links []gitops.Link) error {
	var inner, outer []gitops.OID
	for _, l := range links {
		for _, parent := range l.Parents {
			if p, landed := b.ledger.pairs[parent]; landed && parent != b.base.inner && parent != b.last.inner {
				inner, outer = append(inner, parent), append(outer, p.outer)
			}
		}
	}
	if len(outer) == 0 {
		return nil
	}
	off, err := b.Repo.Unreached(ctx, outer, []gitops.OID{b.onto})
	if err != nil {
		return err
	}
	there, err := b.Repo.Present(ctx, outer)
	if err != nil {
		return err
	}
	undone := func(p pair) bool {
		return slices.Contains(off, p.outer) || slices.Contains(outer, p.outer) && !slices.Contains(there, p.outer)
	}
	if !slices.ContainsFunc(inner, func(id gitops.OID) bool { return undone(b.ledger.pairs[id]) }) {
		return nil
	}
	rewritten, err := b.rewritten(ctx)
	if err != nil {
		return err
	}
	b.stands = map[gitops.OID]gitops.OID{}
	for _, id := range inner {
		if undone(b.ledger.pairs[id]) {
			if b.stands[id], err = b.instance(ctx, id, undone, rewritten); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameChange is what a rebase leaves as it is.
type sameChange struct{ written, message string }

func changeOf(c gitops.Commit) sameChange {
	_, written := gitops.SplitIdent(c.Author)
	return sameChange{written, string(c.Message)}
}

// rewrittenRead bounds the commits of the branch that are looked through.
const rewrittenRead = 10_000

// rewritten lists the commits of the branch since the base by what a rebase leaves as it is.
func (b *builder) rewritten(ctx context.Context) (map[sameChange]gitops.OID, error) {
	ids, err := b.Repo.Unreached(ctx, []gitops.OID{b.onto}, []gitops.OID{b.base.outer})
	if err != nil {
		return nil, err
	}
	found := map[sameChange]gitops.OID{}
	for _, id := range ids[:min(len(ids), rewrittenRead)] {
		c, err := b.across.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		found[changeOf(c)] = id
	}
	return found, nil
}

// instance is the commit of the branch that stands for a landed commit which the branch does not have.
func (b *builder) instance(ctx context.Context, inner gitops.OID, undone func(pair) bool, rewritten map[sameChange]gitops.OID) (gitops.OID, error) {
	for {
		p, landed := b.ledger.pairs[inner]
		if landed && !undone(p) {
			if inner == b.base.inner || b.Repo.IsAncestor(ctx, p.outer, b.onto) {
				return p.outer, nil
			}
		}
		c, err := b.inside.Commit(ctx, inner)
		var invalid *gitops.Invalid
		if err != nil && !errors.As(err, &invalid) {
			return "", err
		}
		if id := rewritten[changeOf(c)]; id != "" && landed {
			return id, nil
		}
		if len(c.Parents) == 0 {
			return b.base.outer, nil
		}
		inner = c.Parents[0]
	}
}
