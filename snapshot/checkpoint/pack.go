package checkpoint

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// pack writes new objects into one pack with its index. go-git's own writer must know all objects before it begins, and then keeps them
// in memory.
type pack struct {
	file    *os.File // nil if the objects are not kept
	out     *bufio.Writer
	sum     *counted
	deflate *zlib.Writer
	stored  *zlib.Writer // does not compress; nil if everything is compressed
	added   []idxfile.Entry
	offset  int64          // the offset of the next object
	known   map[oid]bool   // objects of this pack
	has     func(oid) bool // reports whether an object need not be written; may be nil
	most    int64          // the largest size of the pack, in bytes

	beside    *os.File // a file that is synced together with the pack; may be nil
	installed string   // the path of the finished pack
}

// counted passes bytes on, counts them, and computes their checksum.
type counted struct {
	to    io.Writer
	crc   hash.Hash32
	bytes int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.crc.Write(p)
	c.bytes += int64(len(p))
	return c.to.Write(p)
}

// objectTypes are the types of objects in a pack, see gitformat-pack(5).
var objectTypes = map[string]byte{"commit": 1, "tree": 2, "blob": 3}

// newPack begins a pack in a folder. has reports whether an object need not be written; it may be nil.
func newPack(folder string, has func(oid) bool, most int64) (*pack, error) {
	f, err := os.CreateTemp(folder, "tmp_pack_")
	if err != nil {
		return nil, err
	}
	p, err := packInto(f, has, most)
	p.file = f
	if err != nil {
		return nil, errors.Join(err, p.drop())
	}
	return p, nil
}

// packInto begins a pack that is written to w. Without a file, objects get their ids, and are not kept.
func packInto(w io.Writer, has func(oid) bool, most int64) (p *pack, err error) {
	p = &pack{out: bufio.NewWriterSize(w, 1<<16), known: map[oid]bool{}, has: has, most: most}
	p.sum = &counted{to: p.out, crc: crc32.NewIEEE()}
	p.deflate, err = zlib.NewWriterLevel(p.sum, zlib.BestSpeed)
	p.write(packHeader(0))
	return p, err
}

// smallObject is the size up to which compressing an object takes longer than writing it.
const smallObject = 4096

// quickly makes the pack store small objects without compression. They are compressed when the store is compacted.
func (p *pack) quickly() (err error) {
	p.stored, err = zlib.NewWriterLevel(p.sum, zlib.NoCompression)
	return err
}

func packHeader(objects uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), objects)
}

// contains reports whether an object of a size need not be written again. A store can have hundreds of packs, so a quickly written pack
// does not search them for small objects: it may write one again.
func (p *pack) contains(id oid, size int64) bool {
	return p.known[id] || p.has != nil && (p.stored == nil || size > smallObject) && p.has(id)
}

// write writes bytes of the pack that belong to no object. A bufio.Writer keeps its first error, which finish returns.
func (p *pack) write(b []byte) {
	p.out.Write(b) //nolint:errcheck // see finish
	p.offset += int64(len(b))
}

// put stores an object, unless it is stored already, and returns its id.
func (p *pack) put(kind string, content []byte) (oid, error) {
	id := name(kind, content)
	if p.contains(id, int64(len(content))) {
		return id, nil
	}
	return id, p.add(kind, int64(len(content)), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}, func() oid { return id })
}

// smallBlob is the size up to which a content is read into memory first. Then it need not be compressed if the store has it.
const smallBlob = 1 << 20

// putBlob stores the content of a file, which must have the size.
func (p *pack) putBlob(size int64, content io.Reader) (id oid, err error) {
	if size <= smallBlob {
		whole := make([]byte, size)
		if _, err := io.ReadFull(content, whole); err != nil {
			return id, err
		}
		return p.put("blob", whole)
	}
	h := sha1.New() //nolint:gosec // the name of a git object
	fmt.Fprintf(h, "blob %d\x00", size)
	return id, p.add("blob", size, func(w io.Writer) error {
		n, err := io.Copy(io.MultiWriter(h, w), io.LimitReader(content, size))
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		return err
	}, func() oid {
		h.Sum(id[:0])
		return id
	})
}

// add writes one object. It calls id, which returns the object's id, after write.
func (p *pack) add(kind string, size int64, write func(io.Writer) error, id func() oid) error {
	p.sum.crc.Reset()
	p.sum.bytes = 0
	small, length := size <= smallObject, size
	header := objectTypes[kind]<<4 | byte(size&0xf)
	for size >>= 4; size > 0; size >>= 7 {
		p.sum.Write([]byte{header | 0x80}) //nolint:errcheck // see finish
		header = byte(size & 0x7f)
	}
	p.sum.Write([]byte{header}) //nolint:errcheck // see finish
	deflate := p.deflate
	if p.stored != nil && small {
		deflate = p.stored
	}
	deflate.Reset(p.sum)
	if err := errors.Join(write(deflate), deflate.Close()); err != nil {
		return err
	}
	name := id()
	if p.contains(name, length) {
		return p.back()
	}
	p.known[name] = true
	p.added = append(p.added, idxfile.Entry{Hash: plumbing.Hash(name), CRC32: p.sum.crc.Sum32(), Offset: uint64(p.offset)})
	if p.offset += p.sum.bytes; p.offset > p.most {
		return &TooLarge{Bytes: sum(p.most, p.most)}
	}
	return nil
}

// back removes the last object from the pack, because it is stored already. Git refuses a pack that contains an object twice.
func (p *pack) back() error {
	if p.file == nil {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	if err := p.file.Truncate(p.offset); err != nil {
		return err
	}
	_, err := p.file.Seek(p.offset, io.SeekStart)
	return err
}

// finish completes the pack and its index. The index gets its final name last, which makes the objects visible.
func (p *pack) finish() error {
	if len(p.added) == 0 {
		return errors.Join(syncAll(p.beside), p.drop())
	}
	err := p.out.Flush()
	if err == nil {
		_, err = p.file.WriteAt(packHeader(uint32(len(p.added))), 0)
	}
	if err != nil {
		return errors.Join(err, p.drop())
	}
	checksum, err := p.trailer()
	if err == nil {
		err = p.install(checksum)
	}
	if err != nil {
		return errors.Join(err, p.drop())
	}
	return nil
}

// trailer appends the pack's checksum.
func (p *pack) trailer() (checksum plumbing.Hash, err error) {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return checksum, err
	}
	h := sha1.New() //nolint:gosec // the checksum of a pack
	if _, err := io.Copy(h, p.file); err != nil {
		return checksum, err
	}
	h.Sum(checksum[:0])
	_, err = p.file.Write(checksum[:])
	return checksum, err
}

func (p *pack) install(checksum plumbing.Hash) error {
	var w idxfile.Writer
	if err := w.OnHeader(uint32(len(p.added))); err != nil {
		return err
	}
	for _, e := range p.added {
		w.Add(e.Hash, e.Offset, e.CRC32)
	}
	if err := w.OnFooter(checksum); err != nil {
		return err
	}
	made, err := w.Index()
	if err != nil {
		return err
	}
	base := filepath.Join(filepath.Dir(p.file.Name()), "pack-"+checksum.String())
	index, err := os.CreateTemp(filepath.Dir(base), "tmp_idx_")
	if err != nil {
		return err
	}
	defer os.Remove(index.Name())
	defer index.Close()
	buffered := bufio.NewWriter(index)
	if _, err := idxfile.NewEncoder(buffered).Encode(made); err != nil {
		return err
	}
	if err := errors.Join(buffered.Flush(), syncAll(p.file, index, p.beside), p.file.Close()); err != nil {
		return err
	}
	p.installed = base + ".pack"
	if err := os.Rename(p.file.Name(), p.installed); err != nil {
		return err // an index without its pack would make the store unreadable
	}
	return os.Rename(index.Name(), base+".idx")
}

// syncAll writes files to the disk. It syncs them at the same time, since a file system with a journal then writes its journal once.
func syncAll(all ...*os.File) (err error) {
	synced := make(chan error, len(all))
	for _, f := range all {
		go func() {
			if f == nil {
				synced <- nil
				return
			}
			synced <- f.Sync()
		}()
	}
	for range all {
		err = errors.Join(err, <-synced)
	}
	return err
}

// drop removes the unfinished pack.
func (p *pack) drop() error {
	p.file.Close()
	return os.Remove(p.file.Name())
}
