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

// findReplacements finds replacements for landed commits that are parents of the links or of commits set aside, but that the branch does not contain
// any more, because the user has rebased or removed them. The replacement is the user's rebased commit, or else the image of the parent. A commit that
// builds on a removed commit must not make it an ancestor of the branch again: otherwise a secret that the user has removed would be pushed.
//
// On an older commit of the branch, it also replaces those that only newer commits of the branch reach, among them the user's. If a commit that is
// built there had them as parents, the user's merge of it would remove what the branch has gained until then.
func (b *builder) findReplacements(ctx context.Context, links []quarantine.Link) error {
	parents := b.knownParents(links)
	outer := ledger.Outers(parents)
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
	if !slices.ContainsFunc(parents, undone) {
		return nil
	}
	rewritten, err := b.rewritten(ctx)
	if err != nil {
		return err
	}
	b.replaced = map[gitops.OID]gitops.OID{}
	for _, p := range parents {
		switch {
		case !undone(p):
		case b.plan.Brought[p.Inner]:
			b.replaced[p.Inner], err = b.request.Repo.MergeBase(ctx, p.Inner, b.onto)
		default:
			b.replaced[p.Inner], err = b.replacement(ctx, p.Inner, undone, rewritten)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// knownParents returns the parents of the links and of commits set aside that have landed, and on an older commit of the branch also those that are
// commits of the branch. The outer commit of the last landed one is known, and so it is not among them.
func (b *builder) knownParents(links []quarantine.Link) (known []ledger.Pair) {
	for _, a := range b.plan.Aside {
		if !a.Side { // it is built on top of others
			a.Parents = a.Parents[min(1, len(a.Parents)):]
		}
		links = append(slices.Clip(links), a.Link)
	}
	for _, l := range links {
		for _, parent := range l.Parents {
			for !b.plan.Ledger.Has(parent) && b.plan.ParentOf(parent) != "" {
				parent = b.plan.ParentOf(parent)
			}
			if p, landed := b.plan.Ledger.Image(parent); landed && parent != b.plan.Ledger.Base.Inner && parent != b.plan.Last.Inner {
				known = append(known, ledger.Pair{Inner: parent, Outer: p.Outer})
			} else if b.plan.Brought[parent] && b.onto != b.request.Onto {
				known = append(known, ledger.Pair{Inner: parent, Outer: parent})
			}
		}
	}
	return known
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
