package hold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// Collision returns the hold for changes of the user in the way of a landing. dir is the folder for the files with many paths.
func Collision(ctx context.Context, repo *gitops.Repository, dir string, paths []string) ledger.Hold {
	paths = slices.Clone(paths)
	for i, p := range paths { // one path for all that is in the .git folder of another repository
		if top, _, below := strings.Cut(p, "/.git/"); below {
			paths[i] = top
		}
	}
	paths = slices.Compact(paths)
	h := ledger.Hold{Reason: ledger.Collision, Paths: gitops.Escaped(paths), Places: paths,
		Message: fmt.Sprintf("landing would overwrite changes of yours that are not committed, at %d paths", len(paths))}
	switch other := func(p string) bool { return land.Repository(repo, p) }; {
	case slices.ContainsFunc(paths, other):
		h.Message = "landing would write into another repository, or over it: " + h.Paths[slices.IndexFunc(paths, other)]
	case len(paths) == 1:
		h.Message = "landing would overwrite a change of yours that is not committed: " + h.Paths[0]
	}
	if both := unmergedPaths(ctx, repo, paths); len(both) > 0 {
		h.Paths, h.Places = gitops.Escaped(both), both
		h.Message = fmt.Sprintf("your index has %s, with which git itself would not merge", words.Count(len(both), "unmerged path"))
		// Putting them aside would lose the sides of the conflict.
		h.Next = []string{"git add --" + quoted(pathspecs(both[:min(len(both), pathsNamed)])) + "  # or git rm: after you have resolved the conflict"}
		return h
	}
	h.Next = putAside(ctx, repo, dir, paths)
	return h
}

// unmergedPaths returns those of the paths that have conflicts in the index, as after "git stash pop". An error comes up again when git runs the
// next time.
func unmergedPaths(ctx context.Context, repo *gitops.Repository, paths []string) []string {
	both, _ := conflicted(ctx, repo)
	return slices.DeleteFunc(both, func(p string) bool { return !slices.Contains(paths, p) })
}

// conflicted returns the paths that have conflicts in the index.
func conflicted(ctx context.Context, repo *gitops.Repository) (paths []string, err error) {
	entries, err := repo.Records(ctx, gitops.Call{Args: []string{"ls-files", "-z", "--unmerged"}})
	for _, entry := range entries {
		_, p, _ := strings.Cut(entry, "\t")
		paths = append(paths, p)
	}
	return slices.Compact(paths), err // one entry for each side
}
