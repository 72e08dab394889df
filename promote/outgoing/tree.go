package outgoing

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// FindTrees returns the agents' commits whose trees a push sends without the commits, such as by a tag on a tree. A tree is left out if a
// commit that has it may be pushed, or if the remote has such a commit.
func FindTrees(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store, in Range, who Reviewers) ([]Commit, error) {
	trees, err := treesOf(ctx, repo, in.Tips)
	if err != nil || len(trees) == 0 {
		return nil, err
	}
	with, err := madeWith(ctx, repo, airlocks, trees)
	if err != nil {
		return nil, err
	}
	in.Tips = nil
	for _, ids := range with {
		in.Tips = append(in.Tips, ids...)
	}
	slices.Sort(in.Tips)
	all, err := Find(ctx, repo, airlocks, in, who)
	if err != nil {
		return nil, err
	}
	var made []Commit
	for _, tree := range trees {
		of := slices.DeleteFunc(slices.Clone(all), func(c Commit) bool { return !slices.Contains(with[tree], c.ID) })
		if len(of) == len(with[tree]) && !slices.ContainsFunc(of, Commit.Passes) {
			made = append(made, of...)
		}
	}
	return made, nil
}

// treesOf returns the trees among objects, and those to which tags among them point.
func treesOf(ctx context.Context, repo *gitops.Repository, objects []gitops.OID) (trees []gitops.OID, err error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	peeled := strings.ReplaceAll(gitops.Lines(objects), "\n", "^{}\n")
	err = repo.Look(ctx, gitops.Call{Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectname)"}, Stdin: strings.NewReader(peeled), Stdout: &out})
	for line := range strings.Lines(out.String()) {
		if id, isTree := strings.CutPrefix(strings.TrimSpace(line), "tree "); isTree {
			trees = append(trees, gitops.OID(id))
		}
	}
	slices.Sort(trees)
	return slices.Compact(trees), err
}

// madeWith returns the agents' commits that have the trees, by tree.
func madeWith(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store, trees []gitops.OID) (map[gitops.OID][]gitops.OID, error) {
	noted, unnoted, err := agentsCommits(ctx, repo, airlocks)
	with := map[gitops.OID][]gitops.OID{}
	for _, n := range slices.Concat(noted, unnoted) {
		if slices.Contains(trees, n.Tree) && len(fields(n.Note)["Version"]) > 0 {
			with[n.Tree] = append(with[n.Tree], n.ID)
		}
	}
	return with, err
}
