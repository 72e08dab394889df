package hold

import (
	"context"
	"errors"
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

// refsError reports refs that git in the workspace cannot read.
type refsError struct{ *inner.Invalid }

func (e *refsError) Unwrap() error { return e.Invalid }

// Next returns the command that names the broken refs, and the commits that they may have named.
func (e *refsError) Next() []string {
	return []string{"git airlock visit -- git fsck --lost-found"}
}

// unreadableRefs adds the next commands to an error of git about refs.
func unreadableRefs(err error) error {
	if invalid, ok := errors.AsType[*inner.Invalid](err); ok && !invalid.Stalled {
		return &refsError{invalid}
	}
	return err
}

// Explains reports whether an error of [OtherRefs] may come from one of the places, which then is the better message.
func Explains(places []inner.Place, err error) bool {
	return errors.As(err, new(*refsError)) && slices.ContainsFunc(places, func(p inner.Place) bool { return p.Hidden == inner.Closed })
}

// OtherRefs counts the commits that exist only on inner refs: on branches, tags and the stash, and on the HEADs of the agent's worktrees.
func OtherRefs(ctx context.Context, exporter commits, places []inner.Place, have []string) ([]OtherRef, error) {
	list := []OtherRef{}
	have = append(slices.Clip(have), fetchedRefs, remarkRefs) // these commits also exist elsewhere
	all, err := exporter.Count(ctx, anyRefOrHead, have...)
	if err != nil || all == 0 {
		return list, unreadableRefs(err)
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
