package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// placesTried is the largest number of places on which a conflicting commit is tried. Usually the commit applies to one of the first: the parent of the
// user's commit that conflicts with it.
const placesTried = 30

// tryPlaces builds with try on older commits of the branch, newest first, and returns the first builder without a conflict. If each place conflicts
// or has a part of a change already, tryPlaces returns the builder of the newest place without a conflict, or nil. why is the conflict with the
// branch's tip. A partial clone may lack files of a place, which then counts as a conflict.
func (r Request) tryPlaces(ctx context.Context, why Conflict, try func(onto gitops.OID, how treatment) (*builder, *Conflict, error)) (*builder, error) {
	var paths []string
	partly := gitops.OID("")
	for tried := (gitops.Set[gitops.OID]{}); len(tried) < placesTried; {
		more, err := r.pathsOf(ctx, why)
		if err != nil {
			return nil, err
		}
		more = slices.DeleteFunc(more, func(path string) bool { return slices.Contains(paths, path) })
		paths = append(more[:min(len(more), mostBlamed/2)], paths[:min(len(paths), mostBlamed/2)]...)
		places, err := r.places(ctx, paths)
		if err != nil {
			return nil, err
		}
		if len(tried) == placesTried-1 {
			places = places[max(0, len(places)-1):] // the oldest has the fewest changes of the user
		}
		untried := func(onto gitops.OID) bool { return !tried[onto] }
		i := slices.IndexFunc(places, untried)
		if i < 0 {
			if places, err = r.mergedPlaces(ctx, paths); err != nil {
				return nil, err
			}
			i = slices.IndexFunc(places, untried)
		}
		if i < 0 {
			break
		}
		b, conflict, err := try(places[i], wholeOnly)
		if r.unreadable(ctx, err) {
			conflict, err = &Conflict{}, nil
		}
		if err != nil || conflict == nil {
			return b, err
		}
		if conflict.partly && partly == "" {
			partly = places[i]
		}
		tried.Add(places[i])
		why = *conflict
	}
	if partly == "" {
		return nil, nil
	}
	b, conflict, err := try(partly, anyPart)
	if conflict != nil {
		b = nil
	}
	return b, err
}

// places returns commits of the branch, newest first: the newest one whose changes the agent has, and the parents of older commits that change one of
// some paths. After a rebase, for example, the last landed commit is not on the branch, and newer commits are among them.
func (r Request) places(ctx context.Context, paths []string) (places []gitops.OID, err error) {
	newest := r.Plan.Last.Outer
	if image, _ := r.Plan.Ledger.Image(r.Plan.Since); image.Synced {
		newest = image.Outer
	} else if r.Plan.Brought[r.Plan.Since] {
		newest = r.Plan.Since
	}
	if r.Repo.IsAncestor(ctx, newest, r.Onto) {
		places = []gitops.OID{newest}
	} else {
		newest = r.Onto
	}
	oldest, err := r.Repo.MergeBase(ctx, r.Plan.Ledger.Base.Outer, newest)
	if err != nil || oldest == "" {
		return places, err
	}
	steps, err := r.Repo.Steps(ctx, oldest, newest, paths...)
	for _, step := range slices.Backward(steps[max(0, len(steps)-placesTried):]) {
		c, err := r.Across.Commit(ctx, step)
		if err != nil {
			return places, err
		}
		if len(c.Parents) > 0 {
			places = append(places, c.Parents[0])
		}
	}
	return append(places, oldest), err
}

// mergedPlaces returns the landed commits that change one of some paths, and that the user has merged, newest first. They are not among places, which
// follow the first parents.
func (r Request) mergedPlaces(ctx context.Context, paths []string) (merged []gitops.OID, err error) {
	oldest, err := r.Repo.MergeBase(ctx, r.Plan.Ledger.Base.Outer, r.Onto)
	if err != nil || oldest == "" {
		return nil, err
	}
	between := fmt.Sprintf("%s..%s", oldest, r.Onto)
	all, err := r.Repo.Output(ctx, append([]string{"rev-list", "--full-history", "--topo-order", between, "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	line, err := r.Repo.Steps(ctx, oldest, r.Onto, paths...)
	for name := range strings.FieldsSeq(all) {
		if id := gitops.OID(name); r.Plan.Ledger.HasOuter(id) && !slices.Contains(line, id) {
			merged = append(merged, id)
		}
	}
	return merged, err
}

// pathsOf returns the paths of a conflict, and those that its commit removes: git names a file that the commit renames only by its new name, and one
// that becomes a folder by no path of the folder.
func (r Request) pathsOf(ctx context.Context, c Conflict) ([]string, error) {
	paths := slices.Clone(c.Paths)
	if c.Commit == "" {
		return paths, nil
	}
	commit, err := r.Inside.Commit(ctx, c.Commit)
	if err != nil || len(commit.Parents) == 0 {
		return paths, err
	}
	parent, err := r.Inside.Commit(ctx, commit.Parents[0])
	if err != nil {
		return paths, err
	}
	changes, err := r.Inside.Diff(ctx, parent.Tree, commit.Tree, inner.DefaultLimits)
	if errors.As(err, new(*inner.Invalid)) {
		return paths, nil // there are too many paths to tell which of them conflict
	}
	for _, change := range changes {
		if !change.New.Present() {
			paths = append(paths, change.Path)
		}
	}
	return paths, err
}

// apart returns the commit on which a commit is built that conflicts on all places: the oldest place, without commits of the user that it may change
// back.
func (r Request) apart(ctx context.Context) (gitops.OID, error) {
	base := r.Plan.Ledger.Base.Outer
	oldest, err := r.Repo.MergeBase(ctx, base, r.Onto)
	return cmp.Or(oldest, base), err
}

// hasPart reports whether the commit that is built on has a part of a change, m, already. tree is the merge of the change. If all of the change is new
// there, taking it back gives the tree before. Otherwise hasPart returns the paths that differ then, and never nil. If the branch's tip does not have
// this part, the user's merge of the commit would not bring it: git takes it for a change of the tip.
func (b *builder) hasPart(ctx context.Context, m quarantine.Merge, tree gitops.OID) ([]string, error) {
	if m.Ours == m.Base || m.Base == m.Theirs {
		return nil, nil
	}
	back, conflicts, err := b.mergeOn(ctx, quarantine.Merge{Base: m.Theirs, Ours: tree, Theirs: m.Base, NoDirectoryRenames: m.NoDirectoryRenames, Change: m.Change})
	if b.crash = nil; err != nil || conflicts != nil || back == m.Ours {
		return conflicts, err
	}
	differ, err := b.request.Trees.changes(ctx, m.Ours, back)
	return append([]string{}, slices.Sorted(maps.Keys(differ))...), err
}

// checkPart returns the paths of [builder.hasPart] on a commit that may have no part of the change, m. On one that may, it sets lacks. If commits are
// built with the agent's lines where they conflict, only the first one may lack a part: the others can wait for the user's merge.
func (b *builder) checkPart(ctx context.Context, m quarantine.Merge, tree gitops.OID) ([]string, error) {
	later := false
	if len(b.plan.Chain) > 0 {
		_, later = b.done[b.plan.Chain[0]]
	}
	switch {
	case b.how == wholeOnly || b.how == theirsFirst && later:
		return b.hasPart(ctx, m, tree)
	case b.how == anyPart || b.how == theirsFirst:
		return nil, b.setLacks(ctx, m, tree)
	}
	return nil, nil
}

// setLacks sets lacks if a commit is the first one that is built. tree is the merge of its change, m, with the agent's lines where that conflicts.
func (b *builder) setLacks(ctx context.Context, m quarantine.Merge, tree gitops.OID) (err error) {
	if len(b.fresh) == 0 {
		b.lacks, err = b.lacksOf(ctx, m, tree)
	}
	return err
}

// lacksOf returns the paths in which the user's merge of a commit differs from a merge of the commit's change, m, with the branch's tip. tree is the
// commit's. Where both sides change the same lines, the agent's count. It returns none if git cannot tell.
func (b *builder) lacksOf(ctx context.Context, m quarantine.Merge, tree gitops.OID) ([]string, error) {
	paths, err := b.hasPart(ctx, m, tree)
	if err != nil || paths == nil {
		return nil, err
	}
	tip, err := b.treeOf(ctx, b.request.Onto)
	if err != nil {
		return nil, err
	}
	whole, _, err := b.request.Bridge.MergeTheirs(ctx, b.request.Across, quarantine.Merge{Base: m.Base, Ours: tip, Theirs: m.Theirs, NoDirectoryRenames: m.NoDirectoryRenames, Change: m.Change})
	merged := whole
	if err == nil {
		merged, _, err = b.request.Bridge.MergeTheirs(ctx, b.request.Across, quarantine.Merge{Base: m.Ours, Ours: tip, Theirs: tree, NoDirectoryRenames: m.NoDirectoryRenames, Change: m.Change})
	}
	if gitops.Crashed(err) || b.request.unreadable(ctx, err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	differ, err := b.request.Trees.changes(ctx, whole, merged)
	return slices.Sorted(maps.Keys(differ)), err
}

// pendingLacks returns what lacksOf returns for the first commit of the chain, which is pending.
func (r Request) pendingLacks(ctx context.Context, tail []ledger.Pair, place gitops.OID) ([]string, error) {
	i := slices.IndexFunc(tail, func(t ledger.Pair) bool { return t.Inner == r.Plan.Chain[0] })
	b := newBuilder(r, nil, place, merged, time.Now())
	var m quarantine.Merge
	var err error
	if m.Base, err = b.baseTree(ctx, quarantine.Link{Commit: r.Plan.Chain[0]}); err != nil || b.stopped != nil {
		return nil, err
	}
	if m.Ours, err = b.treeOf(ctx, place); err != nil {
		return nil, err
	}
	if m.Theirs, err = b.innerTree(ctx, r.Plan.Chain[0]); err != nil {
		return nil, err
	}
	tree, err := b.treeOf(ctx, tail[i].Outer)
	if err != nil {
		return nil, err
	}
	return b.lacksOf(ctx, m, tree)
}
