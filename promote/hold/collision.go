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

// stagedNamed bounds the number of paths that the message of [Staged] names.
const stagedNamed = 10

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

// Staged returns an [Error] if the user's index differs from the tip of the branch. Then git merge does not start, also where the merge changes no
// such path (git-merge(1), "Pre-merge checks"). dir is the folder for the files with many paths.
func Staged(ctx context.Context, repo *gitops.Repository, dir string, tip gitops.OID) error {
	paths, err := repo.Records(ctx, gitops.Call{Args: []string{"diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", string(tip)}})
	if err != nil || len(paths) == 0 {
		return err
	}
	h := Collision(ctx, repo, dir, paths)
	if len(unmergedPaths(ctx, repo, paths)) == 0 {
		h.Message = "git merges only if no changes are staged; you have staged " + words.List(h.Paths, stagedNamed)
		h.Next = append([]string{"git commit"}, h.Next...)
	}
	return &Error{Hold: h}
}

// unmergedPaths returns those of the paths that have conflicts in the index, as after "git stash pop". An error comes up again when git runs the
// next time.
func unmergedPaths(ctx context.Context, repo *gitops.Repository, paths []string) (both []string) {
	entries, _ := repo.Records(ctx, gitops.Call{Args: []string{"ls-files", "-z", "--unmerged"}})
	for _, entry := range entries {
		if _, p, _ := strings.Cut(entry, "\t"); slices.Contains(paths, p) && !slices.Contains(both, p) {
			both = append(both, p)
		}
	}
	return both
}
