package quarantine

import (
	"bytes"
	"crypto"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

const (
	// storeLimit bounds an object that is read in process. git reads larger ones.
	storeLimit = 8 << 20
	// entriesKept and basesKept bound the bytes of each of the two generations of cached pack entries and delta
	// bases. The versions of a file form a chain of deltas. Each entry is inflated once while it is cached, although
	// all results together would be a hundred times as many bytes. A commit of a thousand files reads one chain after
	// the other, in another order than that of the paths.
	entriesKept = 4 << 20
	basesKept   = 8 << 20
	// deltaDepth bounds the length of a chain of deltas, and deltasHeld its bytes. The agent chooses both.
	deltaDepth = 4096
	deltasHeld = 2 * storeLimit
)

// go-git hashes everything that it reads from a pack and looks for SHA-1 collisions. The sum is not used here.
func init() { _ = hash.RegisterHash(crypto.SHA1, sha1.New) }

// errNotHere reports that a folder does not have an object in a form that is read here. git may still read it.
var errNotHere = errors.New("not in this folder")

// objectFolder reads loose and packed objects of one object folder in process, with go-git. git cat-file remains the
// reference. It reads every object that is not found here, is larger than a limit, or cannot be read by go-git, and
// all objects with SHA-256 names. objectFolder trusts the folder as git does, because objects are checked when they
// are written. A panic in go-git becomes an error.
type objectFolder struct {
	dir    string
	packs  []*pack
	listed time.Time // modification time of the pack folder when packs was listed

	entries *generations[place, inflatedEntry]
	bases   *generations[place, object]
}

// pack is a pack with its index.
type pack struct {
	*packIndex
	file *os.File
	scan *packfile.Scanner
}

// place is the position of an entry in a pack.
type place struct {
	pack   *pack
	offset int64
}

// object is a whole object.
type object = packing.Object

// openFolders returns a reader for each object folder, or none for an object format that go-git does not support.
func openFolders(format string, dirs ...string) (folders []*objectFolder) {
	for _, dir := range dirs {
		if format == "sha1" {
			s := &objectFolder{dir: dir}
			s.forget()
			folders = append(folders, s)
		}
	}
	return folders
}

func openPack(idx string) (*pack, error) {
	p := &pack{}
	var err error
	if p.packIndex, err = openIndex(idx, sha1.Size); err != nil {
		return nil, err
	}
	if p.file, err = os.Open(strings.TrimSuffix(idx, ".idx") + ".pack"); err != nil {
		p.packIndex.close()
		return nil, err
	}
	p.scan = packfile.NewScanner(p.file)
	return p, nil
}

func (p *pack) close() {
	p.packIndex.close()
	p.file.Close()
}

func (s *objectFolder) close() {
	for _, p := range s.packs {
		p.close()
	}
	s.packs, s.listed = nil, time.Time{}
	s.forget()
}

func (s *objectFolder) forget() {
	s.entries = newGenerations[place, inflatedEntry](entriesKept, largestRead)
	s.bases = newGenerations[place, object](basesKept, largestRead)
}

// contain turns a panic in go-git into an error.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: go-git: %v", errNotHere, r)
	}
}

// read returns an object from a pack, or [errNotHere].
func (s *objectFolder) read(id gitops.OID) (o object, err error) {
	defer contain(&err)
	p, offset := s.find(id)
	if p == nil {
		return object{}, errNotHere
	}
	if o, err = s.packed(p, offset); err != nil {
		return object{}, errors.Join(errNotHere, err)
	}
	return o, nil
}

// info returns the type and size of an object in a pack without reading all of it.
func (s *objectFolder) info(id gitops.OID) (kind string, size int64, err error) {
	defer contain(&err)
	p, offset := s.find(id)
	if p == nil {
		return "", 0, errNotHere
	}
	if kind, size, err = p.info(offset); err != nil {
		return "", 0, errors.Join(errNotHere, err)
	}
	return kind, size, nil
}

// find returns the pack that contains an object. It lists the packs again if the folder has changed.
func (s *objectFolder) find(id gitops.OID) (*pack, int64) {
	name, err := hex.DecodeString(string(id))
	if err != nil || len(name) != sha1.Size {
		return nil, 0
	}
	for {
		for i, p := range s.packs {
			offset, found, err := p.find(name)
			if err == nil && found {
				s.packs[0], s.packs[i] = p, s.packs[0] // the next object is probably in the same pack
				return p, offset
			}
		}
		if !s.list() {
			return nil, 0
		}
	}
}

// list opens the packs, and reports whether they may have changed.
func (s *objectFolder) list() bool {
	folder := filepath.Join(s.dir, "pack")
	info, err := os.Stat(folder)
	if err != nil || info.ModTime().Equal(s.listed) {
		return false
	}
	s.close()
	s.listed = info.ModTime()
	for _, name := range gitops.Glob(folder, "pack-*.idx") {
		if p, err := openPack(name); err == nil {
			s.packs = append(s.packs, p)
		}
	}
	return true
}

// header reads the header of the entry at an offset. base is the offset of its delta base, or 0 for a whole object.
func (p *pack) header(offset int64) (h *packfile.ObjectHeader, base int64, err error) {
	if h, err = p.scan.SeekObjectHeader(offset); err != nil {
		return nil, 0, err
	}
	switch h.Type {
	case plumbing.OFSDeltaObject:
		if base = h.OffsetReference; base <= 0 || base >= offset {
			err = errPack
		}
	case plumbing.REFDeltaObject:
		var found bool
		if base, found, err = p.find(h.Reference[:]); err == nil && !found {
			err = errPack
		}
	}
	return h, base, err
}

// packed reads an object from a pack. It follows the chain of deltas to a whole object and applies the deltas to it.
func (s *objectFolder) packed(p *pack, offset int64) (object, error) {
	var deltas []inflatedEntry
	var at []place
	held := 0
	var o object
	for {
		here := place{p, offset}
		if known, ok := s.bases.get(here); ok {
			o = known
			break
		}
		e, err := s.entry(here)
		if err != nil {
			return o, err
		}
		if e.base == 0 {
			o = object{Kind: e.kind, Content: e.content}
			break
		}
		if held += len(e.content); held > deltasHeld || len(deltas) > deltaDepth {
			return o, errNotHere
		}
		deltas, at = append(deltas, e), append(at, here)
		offset = e.base
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		content, err := applyDelta(o.Content, deltas[i].content)
		if err != nil {
			return o, errors.Join(errNotHere, err)
		}
		o = object{Kind: o.Kind, Content: content}
		s.bases.keep(at[i], o, len(content))
	}
	return o, nil
}

// inflatedEntry is an inflated entry of a pack.
type inflatedEntry struct {
	kind    string
	base    int64 // offset of the delta base; 0 for a whole object
	content []byte
}

// entry reads an entry of a pack.
func (s *objectFolder) entry(at place) (inflatedEntry, error) {
	if e, ok := s.entries.get(at); ok {
		return e, nil
	}
	h, base, err := at.pack.header(at.offset)
	if err != nil {
		return inflatedEntry{}, err
	}
	if h.Length > storeLimit {
		return inflatedEntry{}, errNotHere
	}
	content := bytes.NewBuffer(make([]byte, 0, h.Length+bytes.MinRead))
	if n, _, err := at.pack.scan.NextObject(content); err != nil || n != h.Length {
		return inflatedEntry{}, errors.Join(errPack, err)
	}
	e := inflatedEntry{h.Type.String(), base, content.Bytes()}
	s.entries.keep(at, e, content.Len())
	return e, nil
}

// info follows the chain of deltas and reads only the headers.
func (p *pack) info(offset int64) (kind string, size int64, err error) {
	size = -1
	for range deltaDepth {
		h, base, err := p.header(offset)
		if err != nil {
			return "", 0, err
		}
		if size < 0 {
			if size = h.Length; base != 0 {
				size, err = p.result()
			}
			if err != nil {
				return "", 0, err
			}
		}
		if base == 0 {
			return h.Type.String(), size, nil
		}
		offset = base
	}
	return "", 0, errPack
}

// result reads the size of the object that a delta makes. The delta's header must have been read last.
func (p *pack) result() (int64, error) {
	in, err := p.scan.ReadObject()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	head, err := io.ReadAll(io.LimitReader(in, deltaHead))
	if err != nil {
		return 0, err
	}
	_, size, _, err := deltaSizes(head)
	return size, err
}

// openLoose opens the file of a loose object and reads its header.
func (s *objectFolder) openLoose(id gitops.OID) (f *os.File, r *objfile.Reader, kind string, size int64, err error) {
	if len(id) != 2*sha1.Size {
		return nil, nil, "", 0, fs.ErrNotExist
	}
	if f, err = os.Open(filepath.Join(s.dir, string(id[:2]), string(id[2:]))); err != nil {
		return nil, nil, "", 0, err
	}
	var t plumbing.ObjectType
	if r, err = objfile.NewReader(f); err == nil {
		t, size, err = r.Header()
	}
	if err != nil {
		f.Close()
	}
	return f, r, t.String(), size, err
}

// infoLoose returns the type and size of a loose object.
func (s *objectFolder) infoLoose(id gitops.OID) (kind string, size int64, err error) {
	defer contain(&err)
	f, r, kind, size, err := s.openLoose(id)
	if err != nil {
		return "", 0, err
	}
	return kind, size, errors.Join(r.Close(), f.Close())
}

func (s *objectFolder) readLoose(id gitops.OID) (o object, err error) {
	defer contain(&err)
	f, r, kind, size, err := s.openLoose(id)
	if err != nil {
		return object{}, err
	}
	defer f.Close()
	defer r.Close()
	if size > storeLimit {
		return object{}, errNotHere
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return object{}, err
	}
	return object{Kind: kind, Content: content}, nil
}
