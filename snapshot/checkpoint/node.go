package checkpoint

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// node is a file of a workspace: from a walk, or from a checkpoint.
type node struct {
	name     string
	kind     files.Kind
	mode     uint32 // permission, set-id and sticky bits
	mtime    files.Time
	target   string // of a symbolic link
	blob     oid    // the content of a regular file
	children []*node

	// The following fields are set by a walk only.
	files.Stat
	links      uint64
	opened     bool // the walk gave the owner access to the file, and mode is the mode from before
	stable     bool // every later write changes ctime, so blob is valid as long as the stat is the same
	lasting    bool // so does every write through a shared mapping
	attributes bool // the file has extended attributes

	// tree and meta are the objects of a folder. They are zero if they are not known.
	tree, meta oid
}

// oid is the SHA-1 of a git object.
type oid [20]byte

func (o oid) String() string { return fmt.Sprintf("%x", o[:]) }

// child returns the entry of a folder with a name. It is nil if there is none.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.children, name, func(c *node, name string) int { return strings.Compare(c.name, name) })
	if !ok {
		return nil
	}
	return n.children[i]
}

// all yields a folder and everything below it, with paths from that folder. A folder comes before its entries.
func (n *node) all() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) { n.walk("", yield) }
}

func (n *node) walk(path string, yield func(string, *node) bool) bool {
	if !yield(path, n) {
		return false
	}
	for _, c := range n.children {
		if !c.walk(join(path, c.name), yield) {
			return false
		}
	}
	return true
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// gitFolder is the name of the inner repository's folder at the top of a workspace.
const gitFolder = ".git"

// same reports whether two files are the same. For folders, it does not compare their entries.
func (n *node) same(o *node) bool {
	return n.kind == o.kind && n.mode == o.mode && n.mtime == o.mtime && n.sameContent(o)
}

// sameContent reports whether two files have the same kind, content and target.
func (n *node) sameContent(o *node) bool {
	return n.kind == o.kind && n.blob == o.blob && n.target == o.target
}
