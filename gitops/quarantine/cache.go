package quarantine

import (
	"maps"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// readKept bounds the bytes of each of the two generations of objects that an inspector has read, largestRead those of one.
	readKept    = 12 << 20
	largestRead = 1 << 20
	// treeEntryHeld is about what an entry of a tree takes in memory beside its name.
	treeEntryHeld = 128
	// keptBeside is about what keeping a value takes beside it.
	keptBeside = 128
)

// generations keep values up to a size. When they are too many, they become the older ones, and the former older ones are
// forgotten. What is asked for stays.
type generations[K comparable, V any] struct {
	most, largest int // bytes of a generation, and of one value that is kept
	young, old    map[K]sized[V]
	held          int // bytes of the young ones
}

type sized[V any] struct {
	value V
	bytes int
}

func newGenerations[K comparable, V any](most, largest int) *generations[K, V] {
	return &generations[K, V]{most: most, largest: largest, young: map[K]sized[V]{}}
}

// keep keeps a value that takes about so many bytes in memory.
func (g *generations[K, V]) keep(key K, value V, bytes int) {
	if bytes > g.largest {
		return
	}
	if g.held += bytes + keptBeside; g.held > g.most {
		g.old, g.young, g.held = g.young, map[K]sized[V]{}, bytes
	}
	g.young[key] = sized[V]{value, bytes}
}

// get returns a value that was kept.
func (g *generations[K, V]) get(key K) (V, bool) {
	v, ok := g.young[key]
	if !ok {
		if v, ok = g.old[key]; ok {
			g.keep(key, v.value, v.bytes)
		}
	}
	return v.value, ok
}

// readObject is an object that was read: a tree's entries, or the whole of a blob.
type readObject struct {
	entries []gitops.TreeEntry
	blob    []byte
}

// newRead makes the memory of an inspector: the next commit shares most objects, and replaces what was new a few commits ago.
func newRead() *generations[gitops.OID, readObject] {
	return newGenerations[gitops.OID, readObject](readKept, largestRead)
}

// Lend copies what an inspector has read to another one, which sees the same objects. The two can be used at the same time
// afterwards.
func (i *Inspector) Lend(to *Inspector) {
	copied := *i.read
	copied.young, copied.old = maps.Clone(copied.young), maps.Clone(copied.old)
	to.read = &copied
}
