package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
)

// base returns the checked-out commit, if a snapshot of it is possible.
func (s *Session) base(ctx context.Context) (gitops.Head, error) {
	head, err := s.Repo.Head(ctx)
	switch {
	case err != nil:
		return head, err
	case head.Branch == "":
		return head, gitops.ErrDetached
	case head.Commit == "":
		if n, err := s.Repo.Changes(ctx); err == nil && n > 0 {
			return head, environment.Advise(gitops.ErrUnborn, "git add . && git commit -m 'Initial commit'")
		}
		return head, gitops.ErrUnborn
	}
	if target, err := s.Repo.SymbolicRef(ctx, head.Branch); err != nil || target != "" {
		return head, errors.Join(err, environment.Advise(
			fmt.Errorf("%s is a symbolic ref to %s, and commits cannot land on it", gitops.Text(head.Branch), gitops.Text(target)),
			"git symbolic-ref HEAD "+gitops.Pasteable(target)))
	}
	return head, nil
}

// treeOf returns the tree of a branch's tip. It is empty if the branch does not exist any more.
func treeOf(ctx context.Context, repo *gitops.Repository, branch string) (gitops.OID, error) {
	tip, err := repo.Ref(ctx, branch)
	if err != nil || tip == "" {
		return "", err
	}
	return repo.Tree(ctx, tip)
}
