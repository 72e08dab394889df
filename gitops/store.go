package gitops

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zlib" // inflates 10 to 20 % faster than the standard library; the gate inflates every new blob
)

const (
	// storeLimit bounds an object that is read in process; larger ones are git's.
	storeLimit = 8 << 20
	// basesKept bounds the bytes of each of the two generations of bases of deltas that a store remembers. A commit of a thousand
	// files is one chain after the other, in another order than that of the paths: what is forgotten is inflated again, chain and all.
	basesKept = 8 << 20
	// deltaDepth bounds the length of a chain of deltas, deltasHeld the bytes of them all: an agent makes both.
	deltaDepth = 4096
	deltasHeld = 2 * storeLimit
)

// errNotHere says that a store does not have an object, or not in a form that it reads: git may.
var errNotHere = errors.New("not in this store")

// store reads objects in process out of one object folder: loose ones and packs. Reading one by git is a process, or at
// least the round trip of a pipe; git stays the reference, and is asked for all that is not found here. It trusts the
// folder as git does: objects are checked when they are written.
type store struct {
	dir    string
	hash   int
	packs  []*packFile
	listed time.Time // the pack folder's, when packs was made

	in    *bufio.Reader
	z     io.ReadCloser
	bases map[baseKey]object
	older map[baseKey]object
	kept  int // bytes of bases
}

type baseKey struct {
	pack   *packFile
	offset int64
}

// object is the whole of an object.
type object struct {
	kind    string
	content []byte
}

func openStore(dir, format string) *store {
	return &store{dir: dir, hash: hashSize(format), in: bufio.NewReader(nil), bases: map[baseKey]object{}}
}

// hashSize is the number of bytes of an object's name.
func hashSize(format string) int {
	if format == "sha256" {
		return 32
	}
	return 20
}

func (s *store) close() {
	for _, p := range s.packs {
		p.close()
	}
	s.packs, s.listed = nil, time.Time{}
	s.bases, s.older, s.kept = map[baseKey]object{}, nil, 0
}

// read returns an object out of a pack, [errNotHere] if there is none that can be read here.
func (s *store) read(id OID) (object, error) {
	p, offset := s.find(id)
	if p == nil {
		return object{}, errNotHere
	}
	o, err := s.packed(p, offset)
	if err != nil {
		return object{}, errors.Join(errNotHere, err)
	}
	return o, nil
}

// info tells the type and the size of an object in a pack without reading all of it.
func (s *store) info(id OID) (kind string, size int64, err error) {
	p, offset := s.find(id)
	if p == nil {
		return "", 0, errNotHere
	}
	if kind, size, err = s.packedInfo(p, offset); err != nil {
		return "", 0, errors.Join(errNotHere, err)
	}
	return kind, size, nil
}

// find finds the pack that has an object. Packs that have come since they were listed are listed anew.
func (s *store) find(id OID) (*packFile, int64) {
	name, err := hex.DecodeString(string(id))
	if err != nil || len(name) != s.hash {
		return nil, 0
	}
	for {
		for i, p := range s.packs {
			offset, found, err := p.find(name)
			if err == nil && found {
				s.packs[0], s.packs[i] = p, s.packs[0] // the next one is likely to be beside it
				return p, offset
			}
		}
		if !s.list() {
			return nil, 0
		}
	}
}

// list opens the packs, and reports whether they can be others than before.
func (s *store) list() bool {
	folder := filepath.Join(s.dir, "pack")
	info, err := os.Stat(folder)
	if err != nil || info.ModTime().Equal(s.listed) {
		return false
	}
	s.close()
	s.listed = info.ModTime()
	names, _ := filepath.Glob(filepath.Join(GlobQuote(folder), "pack-*.idx"))
	for _, name := range names {
		if p, err := openPackFile(name, s.hash); err == nil {
			s.packs = append(s.packs, p)
		}
	}
	return true
}

// inflate begins to decompress what is next of in.
func (s *store) inflate(in io.Reader) (err error) {
	if s.z == nil {
		s.z, err = zlib.NewReader(in)
		return err
	}
	return s.z.(zlib.Resetter).Reset(in, nil)
}

// inflated decompresses what is next of in, of which the size is known.
func (s *store) inflated(size int64) ([]byte, error) {
	if size > storeLimit {
		return nil, errNotHere
	}
	if err := s.inflate(s.in); err != nil {
		return nil, err
	}
	return s.rest(size)
}

// rest reads what is left to be decompressed, which must be as long as is known; its checksum follows.
func (s *store) rest(size int64) ([]byte, error) {
	content := make([]byte, size)
	if _, err := io.ReadFull(s.z, content); err != nil {
		return nil, err
	}
	var more [1]byte
	if n, err := s.z.Read(more[:]); n != 0 || err != io.EOF {
		return nil, errors.Join(errPack, err)
	}
	return content, nil
}

// openLoose opens an object's own file and reads its head: "<type> <size>\0".
func (s *store) openLoose(id OID) (f *os.File, kind string, size int64, err error) {
	if len(id) != 2*s.hash {
		return nil, "", 0, fs.ErrNotExist
	}
	if f, err = os.Open(filepath.Join(s.dir, string(id[:2]), string(id[2:]))); err != nil {
		return nil, "", 0, err
	}
	s.in.Reset(f)
	if err = s.inflate(s.in); err == nil {
		var head [32]byte
		n := 0
		for ; n < len(head); n++ {
			if _, err = io.ReadFull(s.z, head[n:n+1]); err != nil || head[n] == 0 {
				break
			}
		}
		if err == nil {
			_, err = fmt.Sscanf(string(head[:n]), "%s %d", &kind, &size)
		}
	}
	if err != nil {
		f.Close()
	}
	return f, kind, size, err
}

// infoLoose tells the type and the size of an object with a file of its own.
func (s *store) infoLoose(id OID) (kind string, size int64, err error) {
	f, kind, size, err := s.openLoose(id)
	if err == nil {
		f.Close()
	}
	return kind, size, err
}

// readLoose returns an object with a file of its own.
func (s *store) readLoose(id OID) (object, error) {
	f, kind, size, err := s.openLoose(id)
	if err != nil {
		return object{}, err
	}
	defer f.Close()
	if size > storeLimit {
		return object{}, errNotHere
	}
	content, err := s.rest(size)
	return object{kind, content}, err
}

// packed reads an object of a pack: the chain of deltas down to a whole one, and up again.
func (s *store) packed(p *packFile, offset int64) (object, error) {
	var deltas [][]byte
	var at []int64
	held := 0
	var o object
	for {
		if known, ok := s.base(baseKey{p, offset}); ok {
			o = known
			break
		}
		e, err := p.entry(s.in, offset)
		if err != nil {
			return o, err
		}
		content, err := s.inflated(e.size)
		if err != nil {
			return o, err
		}
		if kind := packKinds[e.kind]; kind != "" {
			o = object{kind, content}
			s.keep(baseKey{p, offset}, o)
			break
		}
		if held += len(content); held > deltasHeld || len(deltas) > deltaDepth {
			return o, errNotHere
		}
		deltas, at = append(deltas, content), append(at, offset)
		offset = e.base
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		content, err := applyDelta(o.content, deltas[i], storeLimit)
		if err != nil {
			return o, err
		}
		o = object{o.kind, content}
		s.keep(baseKey{p, at[i]}, o)
	}
	return o, nil
}

// keep remembers what others may be based on. When that is too much, it becomes the older generation, and the former one is
// forgotten.
func (s *store) keep(key baseKey, o object) {
	if len(o.content) > basesKept/8 {
		return
	}
	if s.kept += len(o.content); s.kept > basesKept {
		s.older, s.bases, s.kept = s.bases, map[baseKey]object{}, len(o.content)
	}
	s.bases[key] = o
}

// base returns what was kept.
func (s *store) base(key baseKey) (object, bool) {
	o, ok := s.bases[key]
	if !ok {
		if o, ok = s.older[key]; ok {
			s.keep(key, o)
		}
	}
	return o, ok
}

// packedInfo follows the chain of deltas by their heads alone.
func (s *store) packedInfo(p *packFile, offset int64) (kind string, size int64, err error) {
	size = -1
	for range deltaDepth {
		e, err := p.entry(s.in, offset)
		if err != nil {
			return "", 0, err
		}
		if kind := packKinds[e.kind]; kind != "" {
			if size < 0 {
				size = e.size
			}
			return kind, size, nil
		}
		if size < 0 {
			if size, err = s.deltaResult(); err != nil {
				return "", 0, err
			}
		}
		offset = e.base
	}
	return "", 0, errPack
}

// deltaResult reads, of the delta that is next, how long what it makes is.
func (s *store) deltaResult() (int64, error) {
	if err := s.inflate(s.in); err != nil {
		return 0, err
	}
	var head bytes.Buffer
	if _, err := io.CopyN(&head, s.z, 20); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	_, rest, err := deltaSize(head.Bytes())
	if err != nil {
		return 0, err
	}
	size, _, err := deltaSize(rest)
	return size, err
}
