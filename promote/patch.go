package promote

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
)

// patch asks git format-patch and git am for the tree of a commit as well, with the engine "patch", and stops where they do
// not come to the tree that is to be. A merge and an empty commit are nothing that a mail can carry.
func (b *builder) patch(ctx context.Context, l gitops.Link, theirs gitops.OID, parents []gitops.OID, want gitops.OID) error {
	if b.settings.Engine != PatchEngine || b.how == asTheyAre || len(parents) != 1 {
		return nil
	}
	base, err := b.baseTree(ctx, l)
	if err != nil || base == theirs {
		return err
	}
	ours, err := b.treeOf(ctx, parents[0])
	if err != nil {
		return err
	}
	tree, err := b.bridge.Patch(ctx, base, theirs, ours)
	var refused *gitops.RefusedPatch
	switch {
	case errors.As(err, &refused):
		b.refused = fmt.Sprintf("git am does not take commit %.12s: %s", l.Commit, refused.Said)
	case err != nil:
		return err
	case tree != want:
		b.refused = fmt.Sprintf("git am makes another tree of commit %.12s than its own", l.Commit)
	}
	if b.refused != "" {
		b.stopped = []string{}
	}
	return nil
}
