package gitops

import (
	"cmp"
	"context"
	"slices"
)

// Diff lists the paths in which two trees differ as [Git.Diff] does, without a process of its own. An empty name is
// the empty tree. More changes, or a deeper tree, than the limits allow are an [Invalid]: trees
// that share their folders describe more paths than anybody can list.
func (i *Inspector) Diff(ctx context.Context, old, new OID, limits Limits) ([]Change, error) {
	d := &treeDiff{look: i, limits: limits, tree: new}
	if err := d.folder(ctx, "", old, new, 0); err != nil {
		return nil, err
	}
	// A file sorts before the folder of its name within a tree and after it in a list of paths, as in git's.
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return d.changes, nil
}

// treeDiff compares two trees.
type treeDiff struct {
	look    *Inspector
	limits  Limits
	tree    OID
	changes []Change
}

// folder compares two folders at a path, of which one may be missing.
func (d *treeDiff) folder(ctx context.Context, path string, old, new OID, depth int64) error {
	if depth > d.limits.Depth {
		return invalid("tree %s has folders deeper than airlock.limit.depth allows (%d), at \"%s\"", d.tree, d.limits.Depth, Escape(path))
	}
	before, err := d.entries(ctx, old)
	if err != nil {
		return err
	}
	after, err := d.entries(ctx, new)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		var a, b TreeEntry
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].key() < after[0].key():
			a, before = before[0], before[1:]
		case len(before) == 0 || after[0].key() < before[0].key():
			b, after = after[0], after[1:]
		default:
			a, b, before, after = before[0], after[0], before[1:], after[1:]
		}
		if a == b {
			continue
		}
		if err := d.entry(ctx, path+max(a.Name, b.Name), a, b, depth); err != nil {
			return err
		}
	}
	return nil
}

func (d *treeDiff) entries(ctx context.Context, tree OID) ([]TreeEntry, error) {
	if tree == "" {
		return nil, nil
	}
	return d.look.Tree(ctx, tree)
}

// entry compares two entries of one name, of which one may be missing; both are folders or none is.
func (d *treeDiff) entry(ctx context.Context, path string, old, new TreeEntry, depth int64) error {
	name := max(old.Name, new.Name)
	switch {
	case int64(len(path)) > d.limits.Path:
		return invalid("tree %s has a path of %d bytes, more than airlock.limit.path allows (%d): \"%s\"", d.tree, len(path), d.limits.Path, Escape(path))
	case int64(len(name)) > d.limits.Component:
		return invalid("tree %s has a name of %d bytes, more than airlock.limit.component allows (%d): \"%s\"", d.tree, len(name), d.limits.Component, Escape(path))
	case old.Folder() || new.Folder():
		return d.folder(ctx, path+"/", old.OID, new.OID, depth+1)
	case int64(len(d.changes)) >= d.limits.Paths:
		return invalid("tree %s changes more paths than airlock.limit.paths allows (%d)", d.tree, d.limits.Paths)
	}
	d.changes = append(d.changes, Change{Path: path, Old: old.Entry, New: new.Entry})
	return nil
}

// key is what git sorts the entries of a tree by.
func (e TreeEntry) key() string {
	if e.Folder() {
		return e.Name + "/"
	}
	return e.Name
}
