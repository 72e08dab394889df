package inbound

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/promote/hold"
)

// Base returns the checked-out commit, if a snapshot of it is possible.
func Base(ctx context.Context, repo *gitops.Repository, config gitops.Config) (gitops.Head, error) {
	if err := errors.Join(checkBackend(ctx, config), checkRefs(repo, config)); err != nil {
		return gitops.Head{}, err
	}
	head, err := repo.Head(ctx)
	switch {
	case err != nil:
		return head, err
	case head.Branch == "":
		return head, hold.Detached(repo)
	case head.Commit == "":
		if n, err := repo.Changes(ctx); err == nil && n > 0 {
			return head, environment.Advise(gitops.ErrUnborn, "git add . && git commit -m 'Initial commit'")
		}
		return head, gitops.ErrUnborn
	}
	if target, err := repo.SymbolicRef(ctx, head.Branch); err != nil || target != "" {
		return head, errors.Join(err, environment.Advise(
			fmt.Errorf("%s is a symbolic ref to %s, and commits cannot land on it", gitops.Text(head.Branch), gitops.Text(target)),
			"git symbolic-ref HEAD "+gitops.Pasteable(target)))
	}
	return head, nil
}

// refsKey is the setting for where the refs of a repository are, since git 2.54.
const refsKey = "extensions.refstorage"

// checkRefs refuses a repository whose refs are in another folder by its configuration alone. When git itself puts the refs there, it
// replaces the files in .git, so that they name no branch. In such a repository, they name branches as they were before.
func checkRefs(repo *gitops.Repository, config gitops.Config) error {
	where := config.String(refsKey, "")
	info, err := os.Lstat(filepath.Join(repo.CommonDir, "refs/heads"))
	if !strings.Contains(where, "://") || err != nil || !info.IsDir() {
		return nil
	}
	return environment.Advise(fmt.Errorf("extensions.refStorage is %s, but .git has refs, too, as they were before", gitops.Text(where)),
		"git clone --no-local . NEW  # a repository with its refs in .git")
}

// refsVariable is the variable that git obeys instead of that setting, since git 2.54.
const refsVariable = "GIT_REFERENCE_BACKEND"

// checkBackend refuses a variable by which the user's git has other refs than the repository by itself.
func checkBackend(ctx context.Context, config gitops.Config) error {
	value, _ := hostenv.Original(refsVariable)
	if value == "" || value == config.String(refsKey, "files") || !gitops.Since(ctx, 54) {
		return nil
	}
	return environment.Advise(fmt.Errorf("%s is %s, so that git here has other refs than those that commits would land on", refsVariable, gitops.Text(value)),
		"unset "+refsVariable)
}
