package quarantine

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// ErrMany reports that there are too many objects to check them one by one.
var ErrMany = errors.New("too many objects to be looked at one by one")

const (
	// objectsWalked bounds the objects that a walk remembers, because the agent chooses their number.
	objectsWalked = 1 << 20
	// parentsWalked bounds the parents of all commits. One commit has room for 20,000.
	parentsWalked = 2 * objectsWalked
)

// History lists the commits that tip reaches and known do not reach, parents before children. If an object is missing
// or too large, the error is an [inner.Invalid]. After [ErrMany], use [Store.History] instead.
func (i *Inspector) History(ctx context.Context, tip gitops.OID, known func(gitops.OID) bool, limits inner.Limits) ([]Link, error) {
	type visit struct {
		parents []gitops.OID
		listed  bool
	}
	var links []Link
	met := map[gitops.OID]*visit{}
	parents := 0
	for todo := []gitops.OID{tip}; len(todo) > 0; {
		id := todo[len(todo)-1]
		v := met[id]
		if v == nil && !known(id) {
			c, err := i.limited(ctx, id, limits)
			if err != nil {
				return nil, err
			}
			if len(met) >= objectsWalked {
				return nil, ErrMany
			}
			if parents += len(c.Parents); parents > parentsWalked {
				return nil, inner.Beyondf("the new commits have more than %d parents", parentsWalked)
			}
			met[id] = &visit{parents: c.Parents}
			todo = append(todo, c.Parents...)
			continue
		}
		todo = todo[:len(todo)-1]
		if v != nil && !v.listed {
			v.listed = true
			links = append(links, Link{id, v.parents})
		}
	}
	return links, nil
}

// limited reads a commit that has not been checked yet.
func (i *Inspector) limited(ctx context.Context, id gitops.OID, limits inner.Limits) (gitops.Commit, error) {
	content, size, err := i.contents(ctx, id, "commit", limits.Commit)
	if err != nil {
		return gitops.Commit{}, incomplete("commit", id, err)
	}
	if err := limits.Check("commit", id, size); err != nil {
		return gitops.Commit{}, err
	}
	c, err := i.parse(id, content)
	if err == nil {
		err = CheckDates(id, c)
	}
	return c, err
}

// CheckDates returns an [inner.Invalid] for a commit with a date that ends git log.
func CheckDates(id gitops.OID, c gitops.Commit) error {
	if when := c.UnshownDate(); when != "" {
		return inner.Invalidf("commit %s: git cannot show its date %q; to give it another one: git commit --amend --date=now", id, when)
	}
	return nil
}

// Walk checks that commits, which are ordered parents before children, are complete if the commits before them are
// complete. It checks each tree and blob that no parent has at the same path: it must exist, have the right type, and
// be within the limits. If found is not nil, Walk calls it for each of these objects.
//
// If an object is missing, too large or too deep, the error is an [inner.Invalid]. After [ErrMany], use
// [Store.Connected] and [Store.CheckSizes] instead.
func (i *Inspector) Walk(ctx context.Context, links []Link, limits inner.Limits, found func(gitops.OID)) error {
	w := &walk{objects: i, limits: limits, found: found, trees: map[gitops.OID]gitops.OID{}, seen: map[typedObject]bool{}, sizeBudget: i.sizeBudget(limits.Paths, limits.Depth)}
	for _, l := range links {
		if err := w.commit(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// walk is the state of one Walk.
type walk struct {
	objects    *Inspector
	limits     inner.Limits
	found      func(gitops.OID)
	trees      map[gitops.OID]gitops.OID // the trees of commits
	seen       map[typedObject]bool
	held       int64 // number of entries in the trees from the top to the current folder
	sizeBudget *sizeBudget
}

// typedObject is an object with the type that an entry claims. The same name may stand in two places with different types,
// of which one is wrong.
type typedObject struct {
	id   [32]byte
	tree bool
}

// incomplete returns an [inner.Invalid] if an object is missing, and err itself otherwise.
func incomplete(kind string, id gitops.OID, err error) error {
	if errors.Is(err, errMissing) {
		return inner.Invalidf("the exported history is not complete: %s %s is missing", kind, id)
	}
	return err
}

// commit checks the objects of a commit that its parents do not have.
func (w *walk) commit(ctx context.Context, l Link) error {
	tree, err := w.tree(ctx, l.Commit)
	if err != nil {
		return err
	}
	parents := make([]gitops.OID, len(l.Parents))
	for i, p := range l.Parents {
		if parents[i], err = w.tree(ctx, p); err != nil {
			return err
		}
	}
	if err := w.folder(ctx, tree, parents, 0); err != nil || w.limits.Entries == 0 {
		return err
	}
	var before gitops.OID // the tree of the first parent, if there is one
	if len(parents) > 0 {
		before = parents[0]
	}
	_, err = w.sizeBudget.change(ctx, before, tree, 0)
	if errors.Is(err, errTooLarge) {
		err = tooManyChanges(w.limits, tree)
	}
	return err
}

func (w *walk) tree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if tree, ok := w.trees[commit]; ok {
		return tree, nil
	}
	c, err := w.objects.Commit(ctx, commit)
	if err != nil {
		return "", incomplete("commit", commit, err)
	}
	w.trees[commit] = c.Tree
	return c.Tree, nil
}

// folder checks a tree that differs from those of the parents.
func (w *walk) folder(ctx context.Context, tree gitops.OID, parents []gitops.OID, depth int64) error {
	if slices.Contains(parents, tree) || !w.fresh(tree, true) {
		return nil
	}
	if depth > w.limits.Depth {
		return tooDeep(tree, w.limits.Depth)
	}
	entries, err := w.objects.Tree(ctx, tree)
	if err != nil {
		return incomplete("tree", tree, err)
	}
	if w.found != nil {
		w.found(tree)
	}
	before, longest := make([][]gitops.TreeEntry, len(parents)), 0
	for i, p := range parents {
		if before[i], err = w.objects.Tree(ctx, p); err != nil {
			return incomplete("tree", p, err)
		}
		longest = max(longest, len(before[i]))
	}
	if more := int64(len(entries) - longest); more > w.limits.Paths {
		return inner.Beyondf("tree %s changes more paths than airlock.limit.paths allows (%d)", tree, w.limits.Paths)
	}
	// The entries of all folders from the top to this one are in memory.
	if w.held += int64(len(entries)); w.held > max(w.limits.Entries, w.limits.Paths) {
		return inner.Beyondf("tree %s has more than %d entries in the folders above it and its own", tree, max(w.limits.Entries, w.limits.Paths))
	}
	defer func() { w.held -= int64(len(entries)) }()
	for _, e := range entries {
		folders, same := w.beside(e, before)
		switch {
		case same:
		case int64(len(e.Name)) > w.limits.Component:
			return tooLong(w.limits, tree, e.Name)
		case e.Gitlink():
		case e.Folder():
			err = w.folder(ctx, e.OID, folders, depth+1)
		default:
			err = w.blob(ctx, e.OID)
		}
		if err != nil {
			return err
		}
		if len(w.seen) > objectsWalked {
			return ErrMany
		}
	}
	return nil
}

// beside searches the parents' trees for an entry, and removes the entries up to it from these trees. It returns
// whether a parent has the same entry, and the folders that the parents have there.
func (w *walk) beside(e gitops.TreeEntry, before [][]gitops.TreeEntry) (folders []gitops.OID, same bool) {
	key := e.SortKey()
	for i := range before {
		for len(before[i]) > 0 && before[i][0].SortKey() < key {
			before[i] = before[i][1:]
		}
		if len(before[i]) == 0 || before[i][0].SortKey() != key {
			continue
		}
		same = same || before[i][0] == e
		if before[i][0].Folder() {
			folders = append(folders, before[i][0].OID)
		}
	}
	return folders, same
}

func (w *walk) blob(ctx context.Context, id gitops.OID) error {
	if !w.fresh(id, false) {
		return nil
	}
	size, err := w.objects.Size(ctx, id)
	if err != nil {
		return incomplete("blob", id, err)
	}
	if err := w.limits.Check("blob", id, size); err != nil {
		return err
	}
	if w.found != nil {
		w.found(id)
	}
	return nil
}

// fresh reports whether the walk sees an object for the first time.
func (w *walk) fresh(id gitops.OID, tree bool) bool {
	key := typedObject{tree: tree}
	if _, err := hex.Decode(key.id[:], []byte(id)); err != nil || w.seen[key] {
		return false
	}
	w.seen[key] = true
	return true
}
