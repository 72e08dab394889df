package hold

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// OtherRef counts commits on an inner ref that does not land by itself.
type OtherRef struct {
	Ref     string `json:"ref"` // escaped; "other refs" for the refs that are not counted one by one
	Commits int    `json:"commits"`
	Name    string `json:"-"` // the unescaped name of the ref; empty for several refs
}

// refsWatched bounds the number of inner refs that are counted one by one.
const refsWatched = 50

// otherRefs names the refs that are not counted one by one.
const otherRefs = "other refs"

// Arguments of rev-list: all refs, all refs and HEADs, the remote-tracking refs, and the notes of [inner.Workspace.Remark].
const (
	anyRef, anyRefOrHead = "--glob=refs/*", "--all"
	fetchedRefs          = "--remotes"
	remarkRefs           = "--glob=refs/notes/revie[w]" // a pattern, which may match nothing
)

// commits counts and lists commits of the inner repository, as [promote.Exporter] does.
type commits interface {
	Branches(ctx context.Context, patterns ...string) ([]inner.Ref, error)
	Count(ctx context.Context, want string, have ...string) (int, error)
}

// OtherRefs counts the commits that exist only on inner refs: on branches, tags and the stash, and on the HEADs of the agent's worktrees.
func OtherRefs(ctx context.Context, exporter commits, places []inner.Place, have []string) ([]OtherRef, error) {
	list := []OtherRef{}
	have = append(slices.Clip(have), fetchedRefs, remarkRefs) // these commits also exist elsewhere
	all, err := exporter.Count(ctx, anyRefOrHead, have...)
	if err != nil || all == 0 {
		return list, err
	}
	refs, err := exporter.Branches(ctx, "refs")
	if err != nil {
		return list, err
	}
	refs = slices.DeleteFunc(refs, func(r inner.Ref) bool { return r.Name == inner.Main })
	counted := slices.Clone(have)
	for _, r := range refs[:min(len(refs), refsWatched)] {
		n, err := exporter.Count(ctx, string(r.Commit), have...)
		if err != nil {
			return list, err
		}
		if n > 0 {
			list = append(list, OtherRef{gitops.Text(r.Name).String(), n, r.Name})
			counted = append(counted, string(r.Commit))
		}
	}
	if len(refs) > refsWatched {
		n, err := exporter.Count(ctx, anyRef, counted...)
		if err != nil {
			return list, err
		}
		if n > 0 {
			list = append(list, OtherRef{otherRefs, n, ""})
		}
	}
	// A detached HEAD may hold commits of its own. A HEAD that names no commit holds none.
	if n, err := exporter.Count(ctx, "HEAD", append([]string{anyRef}, have...)...); err == nil && n > 0 {
		list = append(list, OtherRef{"HEAD", n, "HEAD"})
	}
	for _, p := range places {
		if p.Detached == "" {
			continue
		}
		// The hint for one HEAD lands what it shares with the others.
		if n, err := exporter.Count(ctx, string(p.Detached), append([]string{anyRef, "HEAD"}, have...)...); err == nil && n > 0 {
			list = append(list, OtherRef{"the HEAD of the worktree " + gitops.Text(p.Path).String(), n, string(p.Detached)})
		}
	}
	if len(list) == 0 {
		list = append(list, OtherRef{otherRefs, all, ""})
	}
	return list, nil
}
