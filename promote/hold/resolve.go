package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	related, err := relate(ctx, repo, request, scratch)
	if err != nil {
		return err
	}
	apart := *repo
	apart.Git = repo.With(writing...)
	apart.Dry = false
	budget := new(busy.Slow).Budget(limits.Time, false)
	err = budget.Do(busy.Work{}, func(t *busy.Meter) (err error) {
		git := apart.Bare().With(slices.Concat(writing, related)...).WithMemory(limits.Memory).Metered(t)
		request.New, _, err = git.MergeTree(ctx, request.Old, request.New)
		return err
	})
	if err != nil {
		return err
	}
	return land.Check(ctx, &apart, request)
}

// StartMerge starts the merge that [CheckMerge] has checked, as [land.StartMerge] does.
func StartMerge(ctx context.Context, repo *gitops.Repository, request land.Landing) error {
	scratch, err := os.MkdirTemp(request.Dir, land.ScratchPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	related, err := relate(ctx, repo, request, scratch)
	if err != nil {
		return err
	}
	r := *repo
	r.Git = repo.With(related...)
	return land.StartMerge(ctx, &r, request)
}

// relate returns variables with which git finds the merge base of the two commits of a request if their histories have no commit in common: the
// user has rewritten the root commit, so that the pending commits are built on the airlock's base, which the branch lacks. Without a merge base, git
// refuses the merge, or takes each file that differs for a conflict. For git the branch's root commit then follows the base, so that the base's tree
// is the one from which the changes of both sides count. The repository stays as it is. dir is a folder for a file that git reads.
func relate(ctx context.Context, repo *gitops.Repository, request land.Landing, dir string) (env []string, err error) {
	common, err := repo.MergeBase(ctx, request.Old, request.New)
	if err != nil || common != "" {
		return nil, err
	}
	root, err := repo.Output(ctx, "rev-list", "--first-parent", "--max-parents=0", string(request.Old), "--")
	if err != nil {
		return nil, err
	}
	users, err := os.ReadFile(filepath.Join(repo.CommonDir, "info", "grafts"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name := filepath.Join(dir, "grafts") // GIT_GRAFT_FILE in git(1), "grafts" in gitrepository-layout(5)
	return []string{"GIT_GRAFT_FILE=" + name}, os.WriteFile(name, fmt.Appendf(users, "\n%s %s\n", root, request.Begun), 0o600)
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
	alone, show := mergedAlone(ctx, repo, commit, both, holds), showing(holds)
	conflicts := len(both) > 0 || err != nil
	var steps []string
	if conflicts {
		steps = append(steps, "resolve the conflicts")
	}
	if len(alone) > 0 {
		steps = append(steps, "check what git has merged by itself in "+words.List(alone, stagedNamed))
	}
	if show != "" {
		steps = append(steps, "make the rest of the agent's change by hand")
		next = append(next, show)
	}
	switch {
	case len(steps) == 0:
		text += " without a conflict; commit"
	case len(steps) == 1 && conflicts:
		text += "; " + steps[0] + " and commit"
	default:
		text += "; " + strings.Join(steps, ", ") + ", and commit"
	}
	if conflicts {
		next = append(next, "git status")
	}
	if len(alone) > 0 {
		next = append(next, "git diff --cached")
	}
	return text + ", then landing continues", append(next, "git commit", "git merge --abort")
}

// showing returns the command that shows the change of the first conflicting commit, if a merge cannot bring all of it, and otherwise empty.
func showing(holds []ledger.Hold) string {
	for _, h := range holds {
		if i := slices.IndexFunc(h.Next, func(next string) bool { return strings.HasSuffix(next, wholeChange) }); i >= 0 {
			return h.Next[i]
		}
	}
	return ""
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
