package proof

import (
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/evidence"
)

// baseRelation relates the commit where a session began to a commit whose statement is about another commit of that session.
type baseRelation string

const (
	// baseShared is a commit that has an ancestor in common with the verified commit.
	baseShared baseRelation = "shared"
	// baseUnrelated is a commit that has no ancestor in common with the verified commit, as far as the history is here.
	baseUnrelated baseRelation = "unrelated"
	// baseAbsent is a commit that is not in this repository.
	baseAbsent baseRelation = "absent"
)

// relate sets the relation of the rows whose statement was found by tree or by patch-id. Such a statement can come from another repository,
// because it names none. The row is then marked, and verify does not fail: the base of a squashed or rebased branch is often a commit that only its author has.
func relate(ctx context.Context, repo *gitops.Repository, rows []row) error {
	var bases []gitops.OID
	for _, r := range rows {
		if base, err := gitops.ParseOID(string(r.verdict.Statement.Predicate.Base)); err == nil && r.aboutOther() {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	there, err := repo.Present(ctx, slices.Compact(bases))
	if err != nil {
		return err
	}
	type pair struct{ base, commit gitops.OID }
	shared := map[pair]bool{} // so that git is asked once for a line of commits
	for i := range rows {
		r := &rows[i]
		base := r.verdict.Statement.Predicate.Base
		switch {
		case !r.aboutOther():
			continue
		case !slices.Contains(there, base):
			r.base = baseAbsent
			continue
		}
		common := slices.ContainsFunc(strings.Fields(r.Parents), func(parent string) bool { return shared[pair{base, gitops.OID(parent)}] })
		if !common {
			ancestor, err := repo.MergeBase(ctx, base, r.ID)
			if err != nil {
				return err
			}
			common = ancestor != ""
		}
		if r.base = baseUnrelated; common {
			r.base, shared[pair{base, r.ID}] = baseShared, true
		}
	}
	return nil
}

// aboutOther reports whether the statement is about another commit, with the same tree or the same patch-id.
func (r row) aboutOther() bool {
	return r.verdict.By == evidence.ByTree || r.verdict.By == evidence.ByPatch
}

// facts returns the facts to print, none for a session of the same history.
func (b baseRelation) facts() []string {
	switch b {
	case baseAbsent:
		return []string{"base not here"}
	case baseUnrelated:
		return []string{"another history"}
	}
	return nil
}
