package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// index is the workspace as the last checkpoint found it. With it, unchanged files need not be read again, and the objects of unchanged
// folders need not be computed again.
type index struct {
	number int   // the number of the checkpoint
	top    *node // nil if the index knows nothing
}

const (
	indexName    = "stats" // git has an index of its own in a repository
	indexVersion = 4
)

// The index file contains the version, the number of the checkpoint, the files in the order of a walk, and a checksum. For a folder, it
// has the number of the folder's entries before these entries.

// Bits of a file's flags.
const (
	isStable = 1 << iota
	hasAttributes
	isLasting
)

// readIndex reads the index. If it is missing, broken or outdated, the result knows nothing, and all files are read.
func (s *Store) readIndex() *index {
	empty := &index{}
	content, err := os.ReadFile(filepath.Join(s.dir, indexName))
	if err != nil || len(content) < crc32.Size {
		return empty
	}
	body, sum := content[:len(content)-crc32.Size], content[len(content)-crc32.Size:]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(sum) {
		return empty
	}
	d := indexDecoder{rest: body}
	version, number := d.number(), int(d.number())
	if version != indexVersion || number != s.last() {
		return empty
	}
	top := d.node(0)
	if d.broken {
		return empty
	}
	return &index{number, top}
}

// writeIndex replaces the index file.
func (s *Store) writeIndex(i *index) error {
	const perFile = 100
	b := make([]byte, 0, perFile<<10)
	b = binary.AppendUvarint(b, indexVersion)
	b = binary.AppendUvarint(b, uint64(i.number))
	b = appendNode(b, i.top)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	temporary := filepath.Join(s.dir, "tmp_index")
	if err := os.WriteFile(temporary, b, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(s.dir, indexName))
}

func appendNode(b []byte, n *node) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = append(b, byte(n.kind))
	text(n.name)
	for _, v := range []uint64{uint64(n.mode), n.Device, n.Inode, uint64(n.Size), n.links} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range []files.Time{n.mtime, n.Mtime, n.Ctime} {
		b = binary.AppendUvarint(binary.AppendVarint(b, v.Sec), uint64(v.Nsec))
	}
	switch n.kind {
	case files.Regular:
		var flags byte
		if n.stable {
			flags |= isStable
		}
		if n.attributes {
			flags |= hasAttributes
		}
		if n.lasting {
			flags |= isLasting
		}
		b = append(append(b, flags), n.blob[:]...)
	case files.Link:
		text(n.target)
	case files.Folder:
		b = append(append(b, n.tree[:]...), n.meta[:]...)
		b = binary.AppendUvarint(b, uint64(len(n.children)))
		for _, c := range n.children {
			b = appendNode(b, c)
		}
	}
	return b
}

// indexDecoder reads the index file. Only this program writes the file, and its checksum is right. So the decoder must only not crash.
type indexDecoder struct {
	rest   []byte
	broken bool // the file has another form
	free   []node
}

func (d *indexDecoder) take(n uint64) []byte {
	if d.broken = d.broken || n > uint64(len(d.rest)); d.broken {
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *indexDecoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.take(uint64(n)) // a negative n is too large
	return v
}

func (d *indexDecoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	d.take(uint64(n)) // a negative n is too large
	return v
}

func (d *indexDecoder) time() files.Time { return files.Time{Sec: d.signed(), Nsec: int64(d.number())} }

func (d *indexDecoder) id() (id oid) {
	copy(id[:], d.take(uint64(len(id))))
	return id
}

func (d *indexDecoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *indexDecoder) node(depth int) *node {
	if len(d.free) == 0 {
		d.free = make([]node, 256)
	}
	n := &d.free[0]
	d.free = d.free[1:]
	n.kind = files.Kind(d.byte())
	n.name = string(d.take(d.number()))
	n.mode, n.Device, n.Inode = uint32(d.number()), d.number(), d.number()
	n.Size, n.links = int64(d.number()), d.number()
	n.mtime, n.Mtime, n.Ctime = d.time(), d.time(), d.time()
	switch n.kind {
	case files.Regular:
		flags := d.byte()
		n.stable, n.attributes, n.lasting = flags&isStable != 0, flags&hasAttributes != 0, flags&isLasting != 0
		n.blob = d.id()
	case files.Link:
		n.target = string(d.take(d.number()))
	case files.Folder:
		n.tree, n.meta = d.id(), d.id()
		d.broken = d.broken || depth > files.MaxDepth+1
		for left := d.number(); left > 0 && !d.broken; left-- {
			n.children = append(n.children, d.node(depth+1))
		}
	}
	return n
}
