package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/git-airlock/git-airlock/gitops"
)

// compact copies the objects of all checkpoints into one new pack and removes the old packs.
func (s *Store) compact() error {
	all, err := s.List()
	if err != nil {
		return err
	}
	old := gitops.Glob(s.folder, "pack-*")
	p, err := newPack(s.folder, nil, 1<<62)
	if err != nil {
		return err
	}
	c := copier{objects: &s.objects, to: p}
	err = c.find()
	for _, k := range all {
		if err = errors.Join(err, c.copy("tree", k.root), c.copy("commit", k.commit)); err != nil {
			return errors.Join(err, p.drop())
		}
	}
	if err := p.finish(); err != nil {
		return err
	}
	made := strings.TrimSuffix(p.installed, ".pack")
	for _, name := range old {
		if strings.TrimSuffix(strings.TrimSuffix(name, ".idx"), ".pack") != made {
			err = errors.Join(err, os.Remove(name))
		}
	}
	s.loose = err != nil
	return errors.Join(err, s.openPacks())
}

// copier copies objects to another pack. It copies the compressed bytes, because compressing everything again took 20 times as long, and
// commands wait for it.
type copier struct {
	*objects
	to     *pack
	places map[oid]place
	buffer []byte
}

// place is the part of a pack that contains an object, from its first offset up to its end.
type place struct {
	in       packed
	from, to int64  // offsets in bytes
	crc      uint32 // CRC-32 of these bytes
}

// find stores the places of all objects of the store in places.
func (c *copier) find() error {
	c.places = map[oid]place{}
	for _, p := range c.packs {
		entries, err := p.index.EntriesByOffset()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		info, err := p.file.Stat()
		if err != nil {
			return err
		}
		end := info.Size() - int64(len(oid{})) // the checksum of the pack follows the last object
		var all []*idxfile.Entry
		for e, err := entries.Next(); err == nil; e, err = entries.Next() {
			all = append(all, e)
		}
		for _, e := range slices.Backward(all) {
			c.places[oid(e.Hash)] = place{p, int64(e.Offset), end, e.CRC32}
			end = int64(e.Offset)
		}
	}
	return nil
}

// copy copies an object and all objects that it refers to.
func (c *copier) copy(kind string, id oid) error {
	if c.to.known[id] {
		return nil
	}
	at, found := c.places[id]
	if !found {
		return fmt.Errorf("%s: %w", id, errNoObject)
	}
	if kind == "tree" {
		entries, err := c.tree(id)
		for _, e := range entries {
			below := "blob"
			if e.mode == folderMode {
				below = "tree"
			}
			err = errors.Join(err, c.copy(below, e.id))
		}
		if err != nil {
			return err
		}
	}
	const most = 1 << 20 // larger objects are always compressed
	if at.to-at.from > most {
		return c.to.take(id, at.crc, io.NewSectionReader(at.in.file, at.from, at.to-at.from))
	}
	c.buffer = slices.Grow(c.buffer[:0], int(at.to-at.from))[:at.to-at.from]
	if _, err := at.in.file.ReadAt(c.buffer, at.from); err != nil {
		return err
	}
	if isStored(c.buffer) {
		_, size, content, err := at.in.open(at.from)
		if err != nil {
			return err
		}
		whole := make([]byte, size)
		if _, err = io.ReadFull(content, whole); err == nil {
			_, err = c.to.put(kind, whole)
		}
		return err
	}
	return c.to.take(id, at.crc, bytes.NewReader(c.buffer))
}

// isStored reports whether [pack.quickly] has written an object of a pack without compression.
func isStored(object []byte) bool {
	for len(object) > 0 && object[0]&0x80 != 0 {
		object = object[1:]
	}
	const header, blockTypes = 2, 0x6 // length of the header of zlib (RFC 1950); bits with the type of its first block (RFC 1951)
	return len(object) > 1+header && len(object) <= smallObject+64 && object[1+header]&blockTypes == 0
}

// take writes an object whose bytes come from another pack. crc is their checksum in that pack's index.
func (p *pack) take(id oid, crc uint32, object io.Reader) error {
	p.sum.crc.Reset()
	n, err := io.Copy(p.sum, object)
	if err == nil && p.sum.crc.Sum32() != crc {
		err = fmt.Errorf("%s: its bytes have changed on the disk", id)
	}
	if err != nil {
		return err
	}
	p.known[id] = true
	p.added = append(p.added, idxfile.Entry{Hash: plumbing.Hash(id), CRC32: crc, Offset: uint64(p.offset)})
	p.offset += n
	return nil
}
