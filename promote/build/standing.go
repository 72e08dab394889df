package build

import (
	"context"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// findReplacements finds replacements for landed commits that are parents of the links, but that the branch does not contain any more, because
// the user has rebased or removed them. The replacement is the user's rebased commit, or else the image of the parent. A commit that builds on
// a removed commit must not make it an ancestor of the branch again: otherwise a secret that the user has removed would be pushed.
func (b *builder) findReplacements(ctx context.Context, links []quarantine.Link) error {
	var inner, outer []gitops.OID
	for _, l := range links {
		for _, parent := range l.Parents {
			for !b.plan.Ledger.Has(parent) && b.plan.ParentOf(parent) != "" {
				parent = b.plan.ParentOf(parent)
			}
			if p, landed := b.plan.Ledger.Image(parent); landed && parent != b.plan.Ledger.Base.Inner && parent != b.plan.Last.Inner {
				inner, outer = append(inner, parent), append(outer, p.Outer)
			}
		}
	}
	if len(outer) == 0 {
		return nil
	}
	off, err := b.request.Repo.Unreached(ctx, outer, []gitops.OID{b.onto})
	if err != nil {
		return err
	}
	there, err := b.request.Repo.Present(ctx, outer)
	if err != nil {
		return err
	}
	undone := func(p ledger.Pair) bool {
		return slices.Contains(off, p.Outer) || slices.Contains(outer, p.Outer) && !slices.Contains(there, p.Outer)
	}
	image := func(id gitops.OID) ledger.Pair {
		p, _ := b.plan.Ledger.Image(id)
		return p
	}
	if !slices.ContainsFunc(inner, func(id gitops.OID) bool { return undone(image(id)) }) {
		return nil
	}
	rewritten, err := b.rewritten(ctx)
	if err != nil {
		return err
	}
	b.replaced = map[gitops.OID]gitops.OID{}
	for _, id := range inner {
		if undone(image(id)) {
			if b.replaced[id], err = b.replacement(ctx, id, undone, rewritten); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameChange holds the parts of a commit that a rebase does not change.
type sameChange struct{ written, message string }

func changeOf(c gitops.Commit) sameChange {
	_, written := gitops.SplitIdent(c.Author)
	return sameChange{written, string(c.Message)}
}

// rewrittenRead bounds the number of the branch's commits that are read.
const rewrittenRead = 10_000

// rewritten returns the commits of the branch since the base, by the parts that a rebase does not change.
func (b *builder) rewritten(ctx context.Context) (map[sameChange]gitops.OID, error) {
	ids, err := b.request.Repo.Unreached(ctx, []gitops.OID{b.onto}, []gitops.OID{b.plan.Ledger.Base.Outer})
	if err != nil {
		return nil, err
	}
	found := map[sameChange]gitops.OID{}
	for _, id := range ids[:min(len(ids), rewrittenRead)] {
		c, err := b.request.Across.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		found[changeOf(c)] = id
	}
	return found, nil
}

// replacement returns the commit that the branch has in place of a landed commit which it does not contain.
func (b *builder) replacement(ctx context.Context, inside gitops.OID, undone func(ledger.Pair) bool, rewritten map[sameChange]gitops.OID) (gitops.OID, error) {
	for {
		p, landed := b.plan.Ledger.Image(inside)
		if landed && !undone(p) && (inside == b.plan.Ledger.Base.Inner || b.request.Repo.IsAncestor(ctx, p.Outer, b.onto)) {
			return p.Outer, nil
		}
		c, err := b.request.Inside.Commit(ctx, inside)
		var invalid *inner.Invalid
		if err != nil && !errors.As(err, &invalid) {
			return "", err
		}
		if id := rewritten[changeOf(c)]; id != "" && landed {
			return id, nil
		}
		if len(c.Parents) == 0 {
			return b.plan.Ledger.Base.Outer, nil
		}
		inside = c.Parents[0]
	}
}
