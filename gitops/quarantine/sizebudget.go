package quarantine

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// listSize is the size of the list of a tree, or of a change of a tree. A shared folder counts at each place, because
// it is listed at each. Folders count as well as files, because listing empty folders takes as much time.
type listSize struct {
	files, folders int64
	text           int64 // size of their paths in bytes
}

// textShare is the average path length, in bytes, for the maximum number of paths.
const textShare = 256

// errTooLarge reports that a list is larger than a limit.
var errTooLarge = errors.New("too much to be listed")

// add adds w, with a prefix before its paths.
func (t *listSize) add(w listSize, prefix, most int64) error {
	t.files += w.files
	t.folders += w.folders
	t.text += w.text + prefix*(w.files+w.folders)
	if t.files > most || t.folders > most || t.text/textShare > most {
		return errTooLarge
	}
	return nil
}

// sizeBudget computes the list sizes of trees and of changes of trees, up to a limit. Each tree, and each pair of
// trees, is read once, even if it occurs at many places: a kilobyte of nested folders can describe more paths than
// can be counted.
type sizeBudget struct {
	objects *Inspector
	most    int64 // files, and folders
	depth   int64
	known   map[[2]gitops.OID]listSize
}

func (i *Inspector) sizeBudget(most, depth int64) *sizeBudget {
	return &sizeBudget{objects: i, most: most, depth: depth, known: map[[2]gitops.OID]listSize{}}
}

// change returns the list size of the differences between two trees. One of them may be missing.
func (s *sizeBudget) change(ctx context.Context, from, to gitops.OID, depth int64) (listSize, error) {
	if w, ok := s.known[[2]gitops.OID{from, to}]; ok || from == to {
		return w, nil
	}
	if depth > s.depth {
		return listSize{}, tooDeep(max(from, to), s.depth)
	}
	before, after, err := s.objects.both(ctx, from, to)
	if err != nil {
		return listSize{}, err
	}
	var sum listSize
	for a, b := range differing(before, after) {
		if a.Entry == b.Entry {
			continue
		}
		name := int64(len(max(a.Name, b.Name)))
		if a.Folder() || b.Folder() {
			within, err := s.change(ctx, a.OID, b.OID, depth+1)
			if err == nil {
				within.folders++
				err = sum.add(within, name+1, s.most)
			}
			if err != nil {
				return sum, err
			}
			continue
		}
		if err := sum.add(listSize{files: 1}, name, s.most); err != nil {
			return sum, err
		}
	}
	s.known[[2]gitops.OID{from, to}] = sum
	return sum, nil
}

// both reads two trees. One of them may be missing.
func (i *Inspector) both(ctx context.Context, from, to gitops.OID) (before, after []gitops.TreeEntry, err error) {
	if from != "" {
		before, err = i.Tree(ctx, from)
	}
	if err == nil && to != "" {
		after, err = i.Tree(ctx, to)
	}
	return before, after, err
}

// differing visits the entries in which two trees differ, even if only in the spelling of a mode. An entry that only
// one tree has is paired with none. A file and a folder of the same name are two entries.
func differing(before, after []gitops.TreeEntry) iter.Seq2[gitops.TreeEntry, gitops.TreeEntry] {
	return func(yield func(gitops.TreeEntry, gitops.TreeEntry) bool) {
		for len(before) > 0 || len(after) > 0 {
			var a, b gitops.TreeEntry
			switch {
			case len(after) == 0 || len(before) > 0 && before[0].SortKey() < after[0].SortKey():
				a, before = before[0], before[1:]
			case len(before) == 0 || after[0].SortKey() < before[0].SortKey():
				b, after = after[0], after[1:]
			default:
				a, b, before, after = before[0], after[0], before[1:], after[1:]
			}
			if a != b && !yield(a, b) {
				return
			}
		}
	}
}

// CheckFiles refuses a tree with more files or more folders than the limits allow.
func (i *Inspector) CheckFiles(ctx context.Context, tree gitops.OID, limits inner.Limits) (int64, error) {
	w, err := i.sizeBudget(limits.Entries, limits.Depth).change(ctx, "", tree, 0)
	if errors.Is(err, errTooLarge) {
		return 0, inner.Beyondf("tree %s has more files than airlock.limit.entries allows (%d), or as many folders", tree, limits.Entries)
	}
	return w.files, err
}

func tooDeep(tree gitops.OID, limit int64) error {
	return inner.Beyondf("tree %s is deeper in folders than airlock.limit.depth allows (%d)", tree, limit)
}

// FileCount bounds the number of files in the newest tree. The files are counted once. After that, added files are
// added to the count, and removed files are not subtracted. The files are counted again only when that sum exceeds
// the limit.
type FileCount struct {
	sync.Mutex
	most int64 // upper bound for the newest tree; 0 before the first count
}

// Grow refuses a commit, of which it gets the tree and the changes, whose tree has more files than the limit.
func (c *FileCount) Grow(ctx context.Context, inspector *Inspector, tree gitops.OID, changes []gitops.Change, limits inner.Limits) error {
	added := int64(0)
	for _, change := range changes {
		if change.Old.Mode == 0 {
			added++
		}
	}
	c.Lock()
	defer c.Unlock()
	if added == 0 || c.most > 0 && c.most+added <= limits.Entries {
		c.most += added
		return nil
	}
	var err error
	c.most, err = inspector.CheckFiles(ctx, tree, limits)
	return err
}
