package build

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// copiesRead bounds the number of synced commits that are compared with new ones.
const copiesRead = 100

// copyOf returns the synced commit that the agent has amended or rebased into a commit with this author line, or empty. Git keeps author and
// date, and no other commit has this author.
func (b *builder) copyOf(ctx context.Context, author string) (gitops.OID, error) {
	if b.synced == nil {
		b.synced = map[string]gitops.OID{}
		all := b.plan.Ledger.Synced
		for _, p := range all[max(0, len(all)-copiesRead):] {
			c, err := b.request.Inside.Commit(ctx, p.Inner)
			if err != nil {
				return "", err
			}
			b.synced[c.Author] = p.Inner
		}
	}
	return b.synced[author], nil
}

// lost reports whether the first new commit would undo a synced commit.
func (b *builder) lost(synced gitops.OID) bool {
	return slices.ContainsFunc(b.plan.Lost, func(p ledger.Pair) bool { return p.Inner == synced })
}

// regain returns the tree of the first new commit with the changes of the user, or of other lines, that the agent's history has lost, and that the
// commit would undo otherwise. If they conflict, it stops the building.
func (b *builder) regain(ctx context.Context, l quarantine.Link, theirs gitops.OID) (gitops.OID, error) {
	if b.how == theirsFirst || len(b.plan.Lost)+len(b.plan.Shared) == 0 || l.Commit != b.plan.Chain[0] { // the oldest place is older than synced commits
		return theirs, nil
	}
	for _, lost := range b.plan.Lost {
		if lost.Inner == b.copied {
			continue
		}
		m, err := b.change(ctx, lost.Inner)
		if err != nil {
			return "", err
		}
		m.Ours = theirs
		if theirs, err = b.mergeOrStop(ctx, l.Commit, m); err != nil || b.stopped != nil {
			return "", err
		}
	}
	for _, part := range b.plan.Shared {
		var err error
		m := quarantine.Merge{Base: part.Base, Ours: theirs, Theirs: part.Theirs}
		if theirs, err = b.mergeOrStop(ctx, l.Commit, m); err != nil || b.stopped != nil {
			return "", err
		}
	}
	return theirs, nil
}

// withSynced returns a tree with the change of a synced commit, or the tree as it is if the two conflict.
func (b *builder) withSynced(ctx context.Context, tree, synced gitops.OID) (gitops.OID, error) {
	m, err := b.change(ctx, synced)
	if err != nil {
		return "", err
	}
	m.Ours = tree
	changed, conflicts, err := b.mergeOn(ctx, m)
	if err != nil || conflicts != nil {
		return tree, err
	}
	return changed, nil
}

// change returns the change of a synced commit, or of another one of [history.Plan.Lost], as a merge without Ours.
func (b *builder) change(ctx context.Context, synced gitops.OID) (m quarantine.Merge, err error) {
	c, err := b.request.Inside.Commit(ctx, synced)
	if err != nil {
		return m, err
	}
	if m.Base, err = b.innerTree(ctx, b.parentOf(quarantine.Link{Commit: synced, Parents: c.Parents})); err != nil {
		return m, err
	}
	m.Theirs, err = b.innerTree(ctx, synced)
	return m, err
}
