package quarantine

import (
	"maps"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// readKept bounds the bytes of each of the two generations of objects that an inspector keeps. Several inspectors have such a cache.
	// It holds what 1,000 commits on 100 files change. With 4 MB, their promotion takes a fifth more processor time, with 12 MB no less.
	readKept    = 8 << 20
	largestRead = 1 << 20 // maximum size of one object
	// treeEntryHeld is the approximate size of a tree entry in memory, without its name.
	treeEntryHeld = 128
	// keptBeside is the approximate overhead of a value in the cache.
	keptBeside = 128
)

// generations is a cache with a size limit. When the young generation is full, it becomes the old one, and the
// previous old one is dropped. A value that is read again moves to the young generation.
type generations[K comparable, V any] struct {
	most, largest int // maximum bytes of a generation, and of one value
	young, old    map[K]sized[V]
	held          int // bytes of the young generation
}

type sized[V any] struct {
	value V
	bytes int
}

func newGenerations[K comparable, V any](most, largest int) *generations[K, V] {
	return &generations[K, V]{most: most, largest: largest, young: map[K]sized[V]{}}
}

// keep adds a value that has the given approximate size in memory.
func (g *generations[K, V]) keep(key K, value V, bytes int) {
	if bytes > g.largest {
		return
	}
	if g.held += bytes + keptBeside; g.held > g.most {
		g.old, g.young, g.held = g.young, map[K]sized[V]{}, bytes
	}
	g.young[key] = sized[V]{value, bytes}
}

// get returns a value from the cache.
func (g *generations[K, V]) get(key K) (V, bool) {
	v, ok := g.young[key]
	if !ok {
		if v, ok = g.old[key]; ok {
			g.keep(key, v.value, v.bytes)
		}
	}
	return v.value, ok
}

// readObject is an object in the cache: the entries of a tree, a whole blob, or a commit.
type readObject struct {
	entries []gitops.TreeEntry
	blob    []byte
	commit  *gitops.Commit
}

// Lend copies the cache of an inspector to another inspector of the same objects. Both can be used at the same time
// afterwards.
func (i *Inspector) Lend(to *Inspector) {
	copied := *i.read
	copied.young, copied.old = maps.Clone(copied.young), maps.Clone(copied.old)
	to.read = &copied
}

// Forget removes what an inspector has read of packs from memory. The parsed objects stay.
func (i *Inspector) Forget() {
	for _, s := range i.stores {
		s.forget()
	}
}
