package provenance

import (
	"context"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Removals returns the changes that remove the notes of commits which the airlock takes back. If a ref of the user still reaches a commit, the
// commit keeps its note. A landed commit without a note would look like the user's own. moves are updates of the user's refs in the same transaction.
func Removals(ctx context.Context, repo *gitops.Repository, back []ledger.Pair, moves ...gitops.RefUpdate) ([]quarantine.Note, error) {
	if len(back) == 0 {
		return nil, nil
	}
	refs, err := repo.Refs(ctx, "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return nil, err
	}
	for _, m := range moves {
		refs[m.Ref] = m.New
	}
	unreached, err := repo.Unreached(ctx, ledger.Outers(back), slices.Collect(maps.Values(refs)))
	if err != nil {
		return nil, err
	}
	gone := gitops.SetOf(unreached...)
	var removals []quarantine.Note
	for _, p := range back {
		if gone[p.Outer] {
			removals = append(removals, quarantine.Note{Commit: p.Outer})
		}
	}
	return removals, nil
}
