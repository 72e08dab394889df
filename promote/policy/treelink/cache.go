package treelink

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// knownEntries bounds the number of cached links, folders and trees.
const knownEntries = 200_000

// Objects reads git's objects.
type Objects interface {
	// Blob reads the first limit bytes of a blob. size is the size of the whole blob.
	Blob(ctx context.Context, id gitops.OID, limit int64) (head []byte, size int64, err error)
	// Tree reads the entries of one tree object.
	Tree(ctx context.Context, id gitops.OID) ([]gitops.TreeEntry, error)
}

// Trees keeps what was read of each tree object, so that the next commit costs only its changes. Several goroutines may use it. Its zero
// value is empty.
type Trees struct {
	mu    sync.Mutex // not held while objects are read: a rule that does not return keeps nobody waiting
	known map[gitops.OID]*links
	held  int // entries counted by knownEntries
}

func (t *Trees) find(tree gitops.OID) (*links, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.known[tree]
	return found, ok
}

func (t *Trees) keep(tree gitops.OID, found *links) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || t.held > knownEntries {
		t.known, t.held = map[gitops.OID]*links{}, 0
	}
	t.known[gitops.OID(strings.Clone(string(tree)))] = found
	t.held += 1 + len(found.targets) + len(found.folders)
}

// Cache reads the links of trees. It must not be used by several goroutines.
type Cache struct {
	Trees  *Trees // required
	newest [2]kept
}

// kept is a map for trees with the same links.
type kept struct {
	links gitops.OID
	all   *Map
}

// links lists the links of a tree object.
type links struct {
	id      gitops.OID // equal for trees with the same links
	targets []named    // the links of the tree itself
	folders []folder   // the folders with links somewhere below
}

type named struct {
	name, target string
	unusable     string // see [Map]
}

type folder struct {
	name  string
	links *links
}

// Of returns the links of a tree. Two calls for trees with the same links may return the same map.
func (c *Cache) Of(ctx context.Context, objects Objects, tree gitops.OID) (*Map, error) {
	found := &links{}
	if tree != "" {
		var err error
		if found, err = c.read(ctx, objects, tree); err != nil {
			return nil, err
		}
	}
	if c.newest[0].all == nil || c.newest[0].links != found.id { // the trees of a commit and of its parent take turns
		c.newest[0], c.newest[1] = c.newest[1], c.newest[0]
	}
	if c.newest[0].all == nil || c.newest[0].links != found.id {
		m := &Map{own: map[string]string{}, unusable: map[string]string{}, root: &place{}}
		m.addAll("", found)
		c.newest[0] = kept{found.id, m}
	}
	return c.newest[0].all, nil
}

// read finds the links of a tree and of the folders below.
func (c *Cache) read(ctx context.Context, objects Objects, tree gitops.OID) (*links, error) {
	if known, ok := c.Trees.find(tree); ok {
		return known, nil
	}
	entries, err := objects.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	found := &links{}
	var text bytes.Buffer
	for _, e := range entries {
		switch {
		case e.Mode == gitops.ModeLink:
			target, size, err := objects.Blob(ctx, e.OID, targetLimit)
			if err != nil {
				return nil, err
			}
			target, _, cut := bytes.Cut(target, []byte{0}) // symlink(2) ends it at a NUL
			found.targets = append(found.targets, named{strings.Clone(e.Name), string(target), unusable(size, cut)})
			fmt.Fprintf(&text, "%s\x00%s\x00", e.Name, e.OID)
		case e.Folder():
			below, err := c.read(ctx, objects, e.OID)
			if err != nil {
				return nil, err
			}
			if below.id != "" {
				// A copy of the name does not keep the text of its whole tree in memory.
				found.folders = append(found.folders, folder{strings.Clone(e.Name), below})
				fmt.Fprintf(&text, "%s/\x00%s\x00", e.Name, below.id)
			}
		}
	}
	if text.Len() > 0 {
		found.id = gitops.HashObject("sha256", "blob", text.Bytes())
	}
	c.Trees.keep(tree, found)
	return found, nil
}

// unusable returns why no system can create a link with a target of a size, as the target is in the tree, or empty.
func unusable(size int64, hasNUL bool) string {
	switch {
	case size == 0:
		return "has an empty target, with which no link can be created"
	case size >= targetLimit:
		return fmt.Sprintf("has a target of %d bytes, and a system allows at most %d", size, targetLimit-1)
	case hasNUL:
		return "has a target with a NUL, at which a system cuts it off"
	}
	return ""
}

func (m *Map) addAll(dir string, all *links) {
	for _, l := range all.targets {
		m.add(pathname.Join(dir, l.name), l)
	}
	for _, f := range all.folders {
		m.addAll(pathname.Join(dir, f.name), f.links)
	}
}
