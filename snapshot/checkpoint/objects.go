package checkpoint

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/git-airlock/git-airlock/gitops"
)

// objects reads the packs of a store, which contain no deltas, see [pack]. go-git's storage could read them as well, but needs 20 more
// packages for signatures, attributes and configuration.
type objects struct {
	folder string
	packs  []packed
}

type packed struct {
	name  string // path of the index
	file  *os.File
	index *idxfile.MemoryIndex
}

var errNoObject = errors.New("no such object")

// openPacks opens packs that other processes have added, and closes packs that they have removed.
func (s *objects) openPacks() error {
	before := map[string]packed{}
	for _, p := range s.packs {
		before[p.name] = p
	}
	s.packs = nil
	for _, name := range gitops.Glob(s.folder, "pack-*.idx") {
		p, open := before[name]
		if delete(before, name); !open {
			var err error
			if p, err = openPacked(name); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", filepath.Base(name), err), closeAll(before))
			}
		}
		s.packs = append(s.packs, p)
	}
	return closeAll(before)
}

func closeAll(packs map[string]packed) (err error) {
	for _, p := range packs {
		err = errors.Join(err, p.file.Close())
	}
	return err
}

func openPacked(name string) (p packed, err error) {
	f, err := os.Open(name)
	if err != nil {
		return p, err
	}
	defer f.Close()
	p.name, p.index = name, idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bufio.NewReaderSize(f, 1<<16)).Decode(p.index); err != nil {
		return p, err
	}
	p.file, err = os.Open(strings.TrimSuffix(name, ".idx") + ".pack")
	return p, err
}

// has reports whether the store has an object.
func (s *objects) has(id oid) bool {
	for _, p := range s.packs {
		if p.index.FanoutMapping[id[0]] < 0 {
			continue // the pack has no object that begins with this byte, which is usual for small packs
		}
		if _, err := p.index.FindOffset(plumbing.Hash(id)); err == nil {
			return true
		}
	}
	return false
}

// open returns type, size and content of an object.
func (s *objects) open(id oid) (kind string, size int64, content io.ReadCloser, err error) {
	for _, p := range s.packs {
		offset, err := p.index.FindOffset(plumbing.Hash(id))
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err == nil {
			kind, size, content, err = p.open(offset)
		}
		if err != nil {
			return "", 0, nil, fmt.Errorf("%s: %w", id, err)
		}
		return kind, size, content, nil
	}
	return "", 0, nil, fmt.Errorf("%s: %w", id, errNoObject)
}

// open reads the object at an offset, see gitformat-pack(5).
func (p packed) open(offset int64) (kind string, size int64, content io.ReadCloser, err error) {
	const longest = 1 << 62
	r := bufio.NewReader(io.NewSectionReader(p.file, offset, longest-offset))
	b, err := r.ReadByte()
	if err != nil {
		return "", 0, nil, err
	}
	for name, number := range objectTypes {
		if number == b>>4&7 {
			kind = name
		}
	}
	size = int64(b & 0xf)
	for shift := 4; b&0x80 != 0 && shift < 60; shift += 7 {
		if b, err = r.ReadByte(); err != nil {
			return "", 0, nil, err
		}
		size |= int64(b&0x7f) << shift
	}
	if kind == "" {
		return "", 0, nil, fmt.Errorf("type %d in a pack", b>>4&7)
	}
	content, err = zlib.NewReader(r)
	return kind, size, content, err
}

// whole reads an object, which must be of the kind.
func (s *objects) whole(kind string, id oid) ([]byte, error) {
	found, size, r, err := s.open(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if found != kind {
		return nil, fmt.Errorf("%s is a %s, not a %s", id, found, kind)
	}
	content := make([]byte, size)
	_, err = io.ReadFull(r, content)
	return content, err
}

// tree reads the entries of a tree.
func (s *objects) tree(id oid) (entries []treeEntry, err error) {
	content, err := s.whole("tree", id)
	for len(content) > 0 && err == nil {
		mode, rest, _ := bytes.Cut(content, []byte(" "))
		name, rest, found := bytes.Cut(rest, []byte{0})
		if !found || len(rest) < len(id) {
			return nil, fmt.Errorf("%s: not the form of a tree", id)
		}
		entries = append(entries, treeEntry{string(mode), string(name), oid(rest[:len(id)])})
		content = rest[len(id):]
	}
	return entries, err
}

// subtrees returns the objects that a tree contains, by their names.
func (s *objects) subtrees(id oid) (map[string]oid, error) {
	entries, err := s.tree(id)
	found := map[string]oid{}
	for _, e := range entries {
		found[e.name] = e.id
	}
	return found, err
}

func parseOID(text string) (id oid, err error) {
	if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) || len(text) != 2*len(id) {
		return id, fmt.Errorf("object name %q", text)
	}
	return id, nil
}
