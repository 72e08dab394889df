package build

import (
	"bytes"
	"context"
	"errors"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// carry merges the changes of some runs into the trees without and with a change, which are before and after. It stops if no difference is left, or
// at a conflict. many is true if there are more merges to make than one cycle makes.
func (t *Trees) carry(ctx context.Context, c *carried) (many bool, err error) {
	for _, r := range c.runs {
		if c.before == c.after {
			return false, nil // the same change of equal trees
		}
		m, err := t.Change(ctx, r.from, r.to)
		if err == nil {
			c.before, c.after, err = t.beside(ctx, m.Base, c.before, c.after)
		}
		if err != nil {
			return false, err
		}
		for _, tree := range []*gitops.OID{&c.before, &c.after} {
			m.Ours, m.NoDirectoryRenames = *tree, true
			if _, known := t.merges[m]; !known && m.Ours != m.Base {
				if t.made++; t.made > mostCarried {
					return true, nil
				}
			}
			if *tree, c.conflicts, err = t.Merge(ctx, m.Base, *tree, m.Theirs); err != nil || c.conflicts != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// beside returns two trees with the same difference as before and after, and otherwise equal to an inner tree: if the latter has the files of
// after in the paths of the difference. Then what the commits between have changed in other paths conflicts with nothing.
func (t *Trees) beside(ctx context.Context, tree, before, after gitops.OID) (gitops.OID, gitops.OID, error) {
	difference, err := t.changes(ctx, before, after)
	if err != nil {
		return "", "", err
	}
	moved, err := t.changes(ctx, after, tree)
	if err != nil || moved.meet(difference.paths()) {
		return before, after, err
	}
	without, conflicts, err := t.bridge.Merge(ctx, quarantine.Merge{Base: after, Ours: tree, Theirs: before, NoDirectoryRenames: true})
	if gitops.Crashed(err) || err == nil && conflicts != nil {
		return before, after, nil
	}
	return without, tree, err
}

// changes are the changes between two trees, by path. They are nil if there are too many to list, and then all paths count as changed.
type changes map[string]gitops.Change

// mostKept bounds the number of changes that are kept in memory, and that of lines.
const mostKept = 100_000

// cache keeps values with a size while their sizes together are at most mostKept. Beyond that it drops all but the newest value.
type cache[K comparable, V any] struct {
	values map[K]V // nil until there is one
	size   int
}

func (c *cache[K, V]) keep(key K, value V, size int) {
	if c.size += size; c.values == nil || c.size > mostKept {
		c.values, c.size = map[K]V{}, size
	}
	c.values[key] = value
}

// changes returns the changes between two trees, which it lists once.
func (t *Trees) changes(ctx context.Context, from, to gitops.OID) (changes, error) {
	key := [2]gitops.OID{from, to}
	if found, known := t.listed.values[key]; known {
		return found, nil
	}
	list, err := t.across.Diff(ctx, from, to, inner.DefaultLimits)
	var found changes
	if err == nil {
		found = make(changes, len(list))
	} else if !errors.As(err, new(*inner.Invalid)) {
		return nil, err
	}
	for _, c := range list {
		found[c.Path] = c
	}
	t.listed.keep(key, found, len(found))
	return found, nil
}

// paths returns the paths of the changes, or nil for all paths.
func (c changes) paths() gitops.Set[string] {
	return c.addTo(gitops.Set[string]{})
}

// addTo adds the paths of the changes to a set. The set is nil if it has all paths.
func (c changes) addTo(paths gitops.Set[string]) gitops.Set[string] {
	if c == nil || paths == nil {
		return nil
	}
	for path := range c {
		paths[path] = true
	}
	return paths
}

// meet reports whether one of the paths is changed. A nil set has all paths.
func (c changes) meet(paths gitops.Set[string]) bool {
	if c == nil || paths == nil {
		return c == nil || len(c) > 0
	}
	if len(paths) < len(c) {
		for path := range paths {
			if _, changed := c[path]; changed {
				return true
			}
		}
		return false
	}
	for path := range c {
		if paths[path] {
			return true
		}
	}
	return false
}

// sameLines reports whether newer changes add or remove a line that older ones add or remove. If not, they do not make again what the older ones take
// back. files reports that one of them adds, removes or replaces a whole file, which counts as all of its lines.
func (t *Trees) sameLines(ctx context.Context, older, newer changes) (same, files bool, err error) {
	if older == nil || newer == nil {
		return true, true, nil
	}
	for path, c := range older {
		other, changed := newer[path]
		if !changed || files {
			continue
		}
		lines, err := t.linesOf(ctx, c)
		if err != nil {
			return false, false, err
		}
		others, err := t.linesOf(ctx, other)
		if err != nil {
			return false, false, err
		}
		files = lines == nil || others == nil
		for line := range lines {
			same = same || others[line]
		}
	}
	return same || files, files, nil
}

// comparedSize bounds the bytes of a file whose lines are compared.
const comparedSize = 1 << 20

// linesOf returns the lines of a changed file that differ, and those between them. The result is nil for all lines.
func (t *Trees) linesOf(ctx context.Context, c gitops.Change) (gitops.Set[string], error) {
	if c.Old.Mode != c.New.Mode || !c.Old.Regular() {
		return nil, nil
	}
	key := [2]gitops.OID{c.Old.OID, c.New.OID}
	if lines, known := t.lines.values[key]; known {
		return lines, nil
	}
	var sides [2][][]byte
	for i, id := range key {
		content, size, err := t.across.Blob(ctx, id, comparedSize)
		if err != nil || size > comparedSize || bytes.IndexByte(content, 0) >= 0 {
			return nil, err
		}
		sides[i] = bytes.Split(content, []byte("\n"))
	}
	before, after := sides[0], sides[1]
	for len(before) > 0 && len(after) > 0 && bytes.Equal(before[0], after[0]) {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && bytes.Equal(before[len(before)-1], after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	lines := gitops.Set[string]{}
	for _, side := range [][][]byte{before, after} {
		for _, line := range side {
			lines[string(line)] = true
		}
	}
	t.lines.keep(key, lines, len(lines))
	return lines, nil
}
