package quarantine

import (
	"cmp"
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// Diff lists the paths in which two trees differ, as [gitops.Git.Diff] does, but without starting a process. An empty
// name is the empty tree. If there are more changes or deeper trees than the limits allow, the error is an
// [inner.Invalid]: trees that share their folders can describe more paths than can be listed.
func (i *Inspector) Diff(ctx context.Context, from, to gitops.OID, limits inner.Limits) ([]gitops.Change, error) {
	return i.diff(ctx, &treeDiff{objects: i, limits: limits, tree: to}, from, to)
}

// DiffStrict is like [Inspector.Diff]. In addition, a mode that git does not write is an [inner.Invalid], unless the
// old tree has the same mode there.
func (i *Inspector) DiffStrict(ctx context.Context, from, to gitops.OID, limits inner.Limits) ([]gitops.Change, error) {
	return i.diff(ctx, &treeDiff{objects: i, limits: limits, tree: to, strict: true}, from, to)
}

func (i *Inspector) diff(ctx context.Context, d *treeDiff, from, to gitops.OID) ([]gitops.Change, error) {
	if err := d.folder(ctx, "", from, to, 0); err != nil {
		return nil, err
	}
	// As in git, a file sorts before the folder of the same name in a tree, and after it in a list of paths.
	slices.SortStableFunc(d.changes, func(a, b gitops.Change) int { return cmp.Compare(a.Path, b.Path) })
	return d.changes, nil
}

// treeDiff compares two trees.
type treeDiff struct {
	objects *Inspector
	limits  inner.Limits
	tree    gitops.OID
	strict  bool
	changes []gitops.Change
	sum     listSize
}

// folder compares two folders at a path. One of them may be missing.
func (d *treeDiff) folder(ctx context.Context, path string, from, to gitops.OID, depth int64) error {
	if depth > d.limits.Depth {
		return inner.Beyondf("tree %s has folders deeper than airlock.limit.depth allows (%d), at \"%s\"", d.tree, d.limits.Depth, gitops.Text(path))
	}
	before, after, err := d.objects.both(ctx, from, to)
	if err != nil {
		return err
	}
	for a, b := range differing(before, after) {
		if err := d.entry(ctx, path+max(a.Name, b.Name), a, b, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry compares two entries of the same name. One of them may be missing. Both are folders, or none is.
func (d *treeDiff) entry(ctx context.Context, path string, from, to gitops.TreeEntry, depth int64) error {
	name := max(from.Name, to.Name)
	switch {
	case d.strict && to.RawMode != "" && !gitops.ProperMode(to.RawMode):
		return inner.Invalidf("the path \"%s\" has the mode %s, which git does not write (it takes it for %s); to write one that it does: git add, git commit",
			gitops.Text(path), gitops.Text(to.RawMode[:min(len(to.RawMode), 20)]), to.Mode)
	case from.Entry == to.Entry:
		return nil
	case int64(len(path)) > d.limits.Path:
		return inner.Beyondf("tree %s has a path of %d bytes, more than airlock.limit.path allows (%d): \"%s\"", d.tree, len(path), d.limits.Path, gitops.Text(path))
	case int64(len(name)) > d.limits.Component:
		return tooLong(d.limits, d.tree, name)
	case from.Folder() || to.Folder():
		if d.sum.add(listSize{folders: 1}, int64(len(path)), d.limits.Paths) != nil {
			return tooManyChanges(d.limits, d.tree)
		}
		return d.folder(ctx, path+"/", from.OID, to.OID, depth+1)
	case d.sum.add(listSize{files: 1}, int64(len(path)), d.limits.Paths) != nil:
		return tooManyChanges(d.limits, d.tree)
	}
	d.changes = append(d.changes, gitops.Change{Path: path, Old: from.Entry, New: to.Entry})
	return nil
}

// tooLong reports a name that is too long for every file system. It quotes the beginning of the name.
func tooLong(l inner.Limits, tree gitops.OID, name string) error {
	return inner.Beyondf("tree %s has a name of %d bytes, more than airlock.limit.component allows (%d): \"%s\"", tree, len(name), l.Component, gitops.Text(name[:min(len(name), 100)]))
}

// tooManyChanges reports that the changes of a tree cannot be listed.
func tooManyChanges(l inner.Limits, tree gitops.OID) error {
	return inner.Beyondf("tree %s changes more paths than airlock.limit.paths allows (%d), as many folders, or names of more than %d bytes for each of them",
		tree, l.Paths, textShare)
}
