package land

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
)

// Check returns a *[CollisionError] if moving the working tree from Old to New would overwrite the user's changes. New can also be a tree.
// Check changes nothing, and can be used in a dry run.
func Check(ctx context.Context, r *gitops.Repository, request Landing) error {
	r = bounded(r, 0)
	r.Dry = false // the copy of the index is refreshed
	scratch, err := os.MkdirTemp(request.Dir, ScratchPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	index := filepath.Join(scratch, "index")
	if _, err := copyIndex(filepath.Join(r.GitDir, "index"), index); err != nil {
		return err
	}
	changes, err := r.Diff(ctx, request.Old, request.New)
	if err != nil {
		return err
	}
	r = bounded(r, len(changes))
	filters, err := filtersOf(ctx, r, nil, request.Config, cmp.Or(request.Begun, request.Old), request.Old)
	if err != nil {
		return err
	}
	g := guard{r: r, copy: index, copied: func() error { return nil }, filters: filters}
	return g.check(ctx, request.Old, changes)
}
