package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/identity"
)

// rootMessage is the message of the root commit. Many projects begin with it.
const rootMessage = "Initial commit\n"

// Snapshot is the content of a new workspace.
type Snapshot struct {
	Root    gitops.OID // the tip of the inner branch main; after Take it is the only commit
	Partial bool       // files were left out
	format  string     // object format of the repository
	ghost   identity.Ghost
	commit  []byte
	pack    string // path of the pack, without extension
}

// Take creates the quarantine in dir. It copies the tree of base into it, without the excluded files, and adds a root
// commit by the ghost.
func Take(ctx context.Context, repo *gitops.Repository, dir string, base gitops.Head, out ignore.Patterns, ghost identity.Ghost) (*Snapshot, error) {
	q, err := quarantine.Create(ctx, repo, dir)
	if err != nil {
		return nil, fmt.Errorf("make the quarantine: %w", err)
	}
	tree, err := q.Leave(ctx, repo, base.Tree, out)
	if err != nil {
		return nil, fmt.Errorf("leave files of %s out: %w", base.Commit, err)
	}
	s := &Snapshot{Partial: tree != base.Tree, format: repo.Format, ghost: ghost}
	who := fmt.Sprintf("%s %d +0000", ghost, time.Now().Unix())
	root := gitops.Commit{Tree: tree, Author: who, Committer: who, Message: []byte(rootMessage)}
	s.commit = root.Bytes()
	stored := make(chan error, 1)
	go func() {
		var err error
		if s.Root, err = q.StoreCommit(ctx, root); err != nil {
			err = fmt.Errorf("store the root commit: %w", err)
		}
		stored <- err
	}()
	if s.pack, err = q.TakeTree(ctx, repo, tree, base.Commit); err != nil {
		err = fmt.Errorf("take the snapshot of %s: %w", base.Commit, err)
	}
	if err := errors.Join(err, <-stored); err != nil {
		return nil, err
	}
	return s, nil
}

// Restore makes a snapshot of an inner commit and its history from the quarantine, for a workspace that was lost.
func Restore(ctx context.Context, q *quarantine.Store, tip gitops.OID, ghost identity.Ghost) (*Snapshot, error) {
	pack, err := q.PackHistory(ctx, tip)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", tip, err)
	}
	return &Snapshot{Root: tip, format: q.Format, ghost: ghost, pack: pack}, nil
}

// Fill makes the inner repository in an empty workspace.
func (s *Snapshot) Fill(ctx context.Context, w inner.Workspace) error {
	return w.Fill(ctx, s.format, s.ghost.Name, s.ghost.Mail, s.Root, s.commit, s.pack)
}
