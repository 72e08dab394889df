package gitops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MergeBase is the best common ancestor of two commits, empty if there is none.
func (g *Git) MergeBase(ctx context.Context, a, b OID) (OID, error) {
	text, err := g.Output(ctx, "merge-base", string(a), string(b))
	if Status(err) == 1 {
		return "", nil
	}
	return OID(text), err
}

// Steps lists the first-parent history from one commit, excluded, to a descendant, included, oldest first. With
// paths it lists only those steps that change one of them or what lies below.
func (g *Git) Steps(ctx context.Context, from, to OID, paths ...string) ([]OID, error) {
	args := []string{"rev-list", "--first-parent", "--reverse", string(from) + ".." + string(to), "--"}
	text, err := g.Output(ctx, append(args, paths...)...)
	return oids(text), err
}

// reflogRead bounds how far back a reflog is read.
const reflogRead = 1000

// Past lists where a branch was, newest first, as far as its reflog tells.
func (r *Repository) Past(ctx context.Context, branch string) ([]OID, error) {
	text, err := r.Output(ctx, "rev-list", "--walk-reflogs", "--max-count="+strconv.Itoa(reflogRead), branch, "--")
	return oids(text), err
}

// Unreached lists what some commits reach and none of others does, children first. Those of either that are gone reach nothing.
func (g *Git) Unreached(ctx context.Context, tips, others []OID) ([]OID, error) {
	var revisions strings.Builder
	for _, t := range tips {
		fmt.Fprintln(&revisions, t)
	}
	for _, o := range others {
		fmt.Fprintf(&revisions, "^%s\n", o)
	}
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: []string{"rev-list", "--ignore-missing", "--topo-order", "--stdin"},
		Stdin: strings.NewReader(revisions.String()), Stdout: &out})
	return oids(out.String()), err
}

// Present lists those of some commits that are there.
func (g *Git) Present(ctx context.Context, commits []OID) ([]OID, error) {
	var names strings.Builder
	for _, c := range commits {
		fmt.Fprintln(&names, c)
	}
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectname)"},
		Stdin: strings.NewReader(names.String()), Stdout: &out})
	var there []OID
	for line := range strings.Lines(out.String()) {
		if id, isCommit := strings.CutPrefix(strings.TrimSpace(line), "commit "); isCommit {
			there = append(there, OID(id))
		}
	}
	return there, err
}

// oids are the names in the lines of what git prints.
func oids(text string) []OID {
	var list []OID
	for line := range strings.Lines(text) {
		list = append(list, OID(strings.TrimSpace(line)))
	}
	return list
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
	text, err := r.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if Status(err) == 1 {
		return "", fmt.Errorf("%q: %w", revision, ErrNoCommit)
	}
	if err != nil {
		return "", err
	}
	return ParseOID(text)
}

// PathspecLimit is the number of paths up to which git is told them; git matches each index
// entry against each pathspec, so that beyond it asking for everything is cheaper.
const PathspecLimit = 100

// IsAncestor reports whether a commit is reachable from another.
func (g *Git) IsAncestor(ctx context.Context, ancestor, of OID) bool {
	return g.Look(ctx, Call{Args: []string{"merge-base", "--is-ancestor", string(ancestor), string(of)}}) == nil
}
