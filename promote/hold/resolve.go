package hold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// stagedNamed bounds the number of paths that a message about staged changes names.
const stagedNamed = 10

// CheckMerge returns an error if git merge would not merge the commit New of a request into the checked-out Old, or would overwrite files of the
// user: an [Error] for staged changes, or a *[land.CollisionError]. Git itself does not refuse to overwrite ignored files. CheckMerge changes
// nothing, and can be used in a dry run. Merging may use the limits of memory and time.
func CheckMerge(ctx context.Context, repo *gitops.Repository, request land.Landing, limits inner.Limits) error {
	if err := staged(ctx, repo, request.Dir, request.Old); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(request.Dir, land.ScratchPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	writing := quarantine.Writing(scratch, filepath.Join(repo.CommonDir, "objects"))
	apart := *repo
	apart.Git = repo.With(writing...)
	apart.Dry = false
	budget := new(busy.Slow).Budget(limits.Time, false)
	err = budget.Do(busy.Work{}, func(t *busy.Meter) (err error) {
		request.New, _, err = apart.Bare().With(writing...).WithMemory(limits.Memory).Metered(t).MergeTree(ctx, request.Old, request.New)
		return err
	})
	if err != nil {
		return err
	}
	return land.Check(ctx, &apart, request)
}

// staged returns an [Error] if the user's index differs from the tip of the branch. Then git merge does not start, also where the merge changes no
// such path (git-merge(1), "Pre-merge checks"). dir is the folder for the files with many paths.
func staged(ctx context.Context, repo *gitops.Repository, dir string, tip gitops.OID) error {
	paths, err := stagedPaths(ctx, repo, string(tip))
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

// stagedPaths returns the paths at which the index differs from a commit.
func stagedPaths(ctx context.Context, repo *gitops.Repository, commit string) ([]string, error) {
	return repo.Records(ctx, gitops.Call{Args: []string{"diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", commit}})
}

// Merging returns the message on a merge that was started because of a conflict, with what the user must do, and the next commands. holds are those
// before the merge.
func Merging(ctx context.Context, repo *gitops.Repository, commit gitops.OID, branch gitops.Text, holds []ledger.Hold) (text string, next []string) {
	text = fmt.Sprintf("merging %.12s into %s", commit, branch)
	both, err := conflicted(ctx, repo)
	conflicts, merged := len(both) > 0 || err != nil, words.List(mergedAlone(ctx, repo, commit, both, holds), stagedNamed)
	switch {
	case conflicts && merged == "":
		text += "; resolve the conflicts and commit"
	case conflicts:
		text += fmt.Sprintf("; resolve the conflicts, check what git has merged by itself in %s, and commit", merged)
	case merged != "":
		text += fmt.Sprintf("; check what git has merged by itself in %s, and commit", merged)
	default:
		text += " without a conflict; commit"
	}
	if conflicts {
		next = append(next, "git status")
	}
	if merged != "" {
		next = append(next, "git diff --cached")
	}
	return text + ", then landing continues", append(next, "git commit", "git merge --abort")
}

// mergedAlone returns the paths of the first conflict that git has merged without the user, escaped. Where the user has taken the lines of a landed
// commit back, these lines are the same as in the commit on which the agent's one is built, so that git sees no change of the user.
func mergedAlone(ctx context.Context, repo *gitops.Repository, commit gitops.OID, both []string, holds []ledger.Hold) []string {
	conflict := slices.IndexFunc(holds, func(h ledger.Hold) bool { return h.Reason == ledger.Conflict })
	paths, err := stagedPaths(ctx, repo, "HEAD")
	if conflict < 0 || err != nil {
		return nil
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		// Git gives a file another name if the other side has a folder at its path.
		return slices.Contains(both, p) || slices.Contains(both, p+"~HEAD") || slices.Contains(both, p+"~"+string(commit))
	})
	return slices.DeleteFunc(gitops.Escaped(paths), func(p string) bool { return !slices.Contains(holds[conflict].Paths, p) })
}
