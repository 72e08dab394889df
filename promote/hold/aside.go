package hold

import (
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
)

// PutAside returns the commands that move paths out of the way: git stash for all paths that it can take, preceded by
// the commands that make it take them, and mv for the rest.
func PutAside(ctx context.Context, repo *gitops.Repository, paths []string) []string {
	var next []string
	unstashable, err := land.FindUnstashable(ctx, repo, paths)
	if err != nil {
		unstashable = land.Unstashable{} // the same error comes up again when git runs the next time
	}
	for _, p := range unstashable.NotStored {
		move := "mv --"
		if slices.Contains(unstashable.Worktrees, p) {
			move = "git worktree move --"
		}
		next = append(next, move+quoted([]string{p, land.FreeName(repo.Top, p)}))
	}
	if len(unstashable.Emptied) > 0 {
		next = append(next, "mkdir --"+quoted(unstashable.Emptied))
	}
	if len(unstashable.Skipped) > 0 {
		next = append(next, "git update-index --no-skip-worktree --"+quoted(unstashable.Skipped))
	}
	if len(unstashable.Assumed) > 0 {
		next = append(next, "git update-index --no-assume-unchanged --"+quoted(unstashable.Assumed))
	}
	if len(unstashable.Intended) > 0 {
		next = append(next, "git --literal-pathspecs rm -q --cached --"+quoted(unstashable.Intended))
	}
	rest := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.Contains(slices.Concat(unstashable.NotStored, unstashable.Emptied), p)
	})
	if len(rest) > 0 {
		next = append(next, "git --literal-pathspecs stash push --all --"+quoted(rest))
	}
	return next
}

func quoted(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(" " + gitops.Pasteable(p))
	}
	return b.String()
}
