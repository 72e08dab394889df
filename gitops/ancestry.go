package gitops

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// MergeBase is the best common ancestor of two commits, empty if there is none.
func (g *Git) MergeBase(ctx context.Context, a, b OID) (OID, error) {
	text, err := g.output(ctx, "merge-base", string(a), string(b))
	if status(err) == 1 {
		return "", nil
	}
	return OID(text), err
}

// Steps lists the first-parent history from one commit, excluded, to a descendant, included, oldest first. With
// paths it lists only those steps that change one of them or what lies below.
func (g *Git) Steps(ctx context.Context, from, to OID, paths ...string) ([]OID, error) {
	args := []string{"rev-list", "--first-parent", "--reverse", string(from) + ".." + string(to), "--"}
	text, err := g.output(ctx, append(args, paths...)...)
	if err != nil {
		return nil, err
	}
	var steps []OID
	for line := range strings.Lines(text) {
		steps = append(steps, OID(strings.TrimSpace(line)))
	}
	return steps, nil
}

// StartMerge merges a commit into the checked-out branch, as far as that goes without the user: up to the conflict
// they are to resolve, or the commit they are to make.
func (r *Repository) StartMerge(ctx context.Context, commit OID) error {
	err := r.Change(ctx, Call{Args: []string{"merge", "--no-ff", "--no-commit", string(commit)}, Stdout: io.Discard})
	if r.Operation() == "merge" {
		return nil
	}
	return err
}

// Commit is the commit that a revision stands for.
func (r *Repository) Commit(ctx context.Context, revision string) (OID, error) {
	text, err := r.output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if status(err) == 1 {
		return "", fmt.Errorf("%q: %w", revision, ErrNoCommit)
	}
	if err != nil {
		return "", err
	}
	return ParseOID(text)
}
