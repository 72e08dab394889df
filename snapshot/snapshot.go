// Package snapshot turns the committed files of an outer branch into a fresh inner repository.
//
// [Take] copies the tree, and nothing else of the branch, into the airlock's quarantine and makes the
// root commit there; [Snapshot.Fill] hands both to a git inside the prison, which makes the inner
// repository of them. No history, remote, configuration or path of the host goes along.
package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// rootMessage is what the first commit of a project usually says.
const rootMessage = "Initial commit\n"

// Snapshot is a taken snapshot.
type Snapshot struct {
	Root   gitops.OID // the inner repository's first commit
	format string
	ghost  identity.Ghost
	commit []byte
	pack   string
}

// Take makes the quarantine in dir and takes a snapshot of base into it, with a root commit by the ghost.
func Take(ctx context.Context, repo *gitops.Repository, dir string, base gitops.Head, ghost identity.Ghost) (*Snapshot, error) {
	q, err := repo.CreateQuarantine(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("make the quarantine: %w", err)
	}
	s := &Snapshot{format: repo.Format, ghost: ghost}
	if s.pack, err = q.TakeTree(ctx, repo, base.Tree, base.Commit); err != nil {
		return nil, fmt.Errorf("take the snapshot of %s: %w", base.Commit, err)
	}
	who := fmt.Sprintf("%s %d +0000", ghost, time.Now().Unix())
	root := gitops.Commit{Tree: base.Tree, Author: who, Committer: who, Message: []byte(rootMessage)}
	s.commit = root.Bytes()
	if s.Root, err = q.StoreCommit(ctx, root); err != nil {
		return nil, fmt.Errorf("store the root commit: %w", err)
	}
	return s, nil
}

// Fill makes the inner repository in an empty workspace.
func (s *Snapshot) Fill(ctx context.Context, w gitops.Workspace) error {
	return w.Fill(ctx, s.format, s.ghost.Name, s.ghost.Mail, s.Root, s.commit, s.pack)
}
