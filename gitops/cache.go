package gitops

import "maps"

const (
	// bytesKept bounds the bytes of each of the two generations of a cache, largestKept those of one object.
	bytesKept   = 12 << 20
	largestKept = 1 << 20
	// entryHeld is about what an entry of a tree takes in memory beside its name.
	entryHeld = 128
)

// cache holds objects that an inspector has read: the next commit shares most of them, and replaces what was new a few
// commits ago.
type cache struct {
	known, older map[OID]known
	bytes        int // of known
}

// known is an object that was read: a tree's entries, or the whole of a blob.
type known struct {
	entries []TreeEntry
	blob    []byte
	size    int // about the bytes that it takes in memory
}

func newCache() *cache { return &cache{known: map[OID]known{}} }

// remember keeps an object. When the objects are too many, they become the older ones, and the former older ones are
// forgotten.
func (m *cache) remember(id OID, k known) {
	if k.size > largestKept {
		return
	}
	if m.bytes += k.size; m.bytes > bytesKept {
		m.older, m.known, m.bytes = m.known, map[OID]known{}, k.size
	}
	m.known[id] = k
}

// recall returns an object that was kept.
func (m *cache) recall(id OID) (known, bool) {
	k, ok := m.known[id]
	if !ok {
		if k, ok = m.older[id]; ok {
			m.remember(id, k)
		}
	}
	return k, ok
}

// Lend copies what an inspector has read to another one, which sees the same objects. The two can be used at the same time
// afterwards.
func (i *Inspector) Lend(to *Inspector) {
	to.cache = &cache{known: maps.Clone(i.known), older: maps.Clone(i.older), bytes: i.bytes}
}
