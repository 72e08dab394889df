package cost

import (
	"hash/maphash"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// Names are the attributes that a commit brings into attribute files, and those of its parent if there are many. The zero value is empty.
type Names struct {
	seed   maphash.Seed
	all    map[uint64]bool // hashes, because a name can have megabytes
	parent bool            // the parent's are in all
}

// Add adds the attributes of a changed file that its previous content does not have. It reports whether some of them are new in n.
func (n *Names) Add(before, after map[string]bool) (some bool) {
	if n.all == nil {
		n.all, n.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	for name := range after {
		if hash := maphash.String(n.seed, name); !before[name] && !n.all[hash] {
			some = true
			if !n.TooMany() {
				n.all[hash] = true
			}
		}
	}
	return some
}

// TooMany reports whether there are more than [TotalNames] attributes. No others are added then.
func (n *Names) TooMany() bool { return len(n.all) > TotalNames }

// AddParent adds the attributes of all files in the parent's tree. It reads the tree once, and only if the commit brings more than [NameLimit].
// tree lists the entries of a tree object, and names returns the attributes of a file. top reports that the file is at the top of the tree.
func (n *Names) AddParent(parent gitops.OID, tree func(gitops.OID) ([]gitops.TreeEntry, error), names func(file gitops.Entry, top bool) (map[string]bool, error)) error {
	if n.parent || len(n.all) <= NameLimit || parent == "" {
		return nil
	}
	n.parent = true
	var read func(id gitops.OID, top bool) error
	read = func(id gitops.OID, top bool) error {
		entries, err := tree(id)
		for i := 0; i < len(entries) && err == nil && !n.TooMany(); i++ {
			e := entries[i]
			if e.Folder() {
				err = read(e.OID, false)
			} else if pathname.Means(e.Name, ".gitattributes") {
				var found map[string]bool
				found, err = names(e.Entry, top)
				n.Add(nil, found)
			}
		}
		return err
	}
	return read(parent, true)
}
