package gitops

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
)

// packFile reads single objects of one pack by its index of version 2 (gitformat-pack(5)).
type packFile struct {
	pack   *os.File
	file   *os.File    // the index
	idx    io.ReaderAt // what is in it
	hash   int         // bytes of a name
	asked  int         // how often it was looked into
	fanout [256]uint32
}

var errPack = errors.New("a pack is not as it should be")

const (
	idxHead   = 8 // magic and version
	idxNames  = idxHead + 256*4
	idxMagic  = "\xfftOc\x00\x00\x00\x02"
	idxWindow = 16      // names that are read at once
	idxHeld   = 1 << 20 // bytes of an index up to which it is held in memory
	idxAsked  = 100     // once it was looked into so often
)

// openPackFile opens the pack beside an index.
func openPackFile(idx string, hash int) (*packFile, error) {
	p := &packFile{hash: hash}
	var err error
	if p.file, err = os.Open(idx); err != nil {
		return nil, err
	}
	if p.pack, err = os.Open(strings.TrimSuffix(idx, ".idx") + ".pack"); err != nil {
		p.file.Close()
		return nil, err
	}
	p.idx = p.file
	var head [idxNames]byte
	if _, err := p.idx.ReadAt(head[:], 0); err != nil || string(head[:idxHead]) != idxMagic {
		p.close()
		return nil, errors.Join(errPack, err)
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[idxHead+4*i:])
	}
	return p, nil
}

func (p *packFile) close() {
	p.file.Close()
	p.pack.Close()
}

// find returns where in the pack an object begins; not found is no error.
func (p *packFile) find(name []byte) (offset int64, found bool, err error) {
	low, high := uint32(0), p.fanout[name[0]]
	if name[0] > 0 {
		low = p.fanout[name[0]-1]
	}
	if p.asked++; p.asked == idxAsked {
		p.hold()
	}
	var buffer [idxWindow * 32]byte
	for low < high {
		// Halved until what is left is read in one go.
		from, n := low, high-low
		if n > idxWindow {
			from, n = low+n/2-idxWindow/2, idxWindow
		}
		names := buffer[:int(n)*p.hash]
		if _, err := p.idx.ReadAt(names, idxNames+int64(from)*int64(p.hash)); err != nil {
			return 0, false, err
		}
		at, order := search(names, name, p.hash)
		switch {
		case order == 0:
			offset, err := p.offset(from + uint32(at))
			return offset, err == nil, err
		case at == 0 && from > low:
			high = from
		case at == int(n) && from+n < high:
			low = from + n
		default:
			return 0, false, nil
		}
	}
	return 0, false, nil
}

// hold reads the whole index, if that is not too much: many names are looked for.
func (p *packFile) hold() {
	info, err := p.file.Stat()
	if err != nil || info.Size() > idxHeld {
		return
	}
	content := make([]byte, info.Size())
	if _, err := p.file.ReadAt(content, 0); err == nil {
		p.idx = bytes.NewReader(content)
	}
}

// search finds a name among sorted ones: order is 0 if it is there, at where it is or would be.
func search(names, name []byte, hash int) (at, order int) {
	low, high := 0, len(names)/hash
	for low < high {
		middle := (low + high) / 2
		switch c := bytes.Compare(names[middle*hash:(middle+1)*hash], name); {
		case c == 0:
			return middle, 0
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, 1
}

// offset reads where the n-th object begins.
func (p *packFile) offset(n uint32) (int64, error) {
	count := int64(p.fanout[255])
	offsets := idxNames + count*int64(p.hash) + count*4
	var b [8]byte
	if _, err := p.idx.ReadAt(b[:4], offsets+4*int64(n)); err != nil {
		return 0, err
	}
	short := binary.BigEndian.Uint32(b[:4])
	if short>>31 == 0 {
		return int64(short), nil
	}
	_, err := p.idx.ReadAt(b[:], offsets+count*4+8*int64(short&(1<<31-1)))
	return int64(binary.BigEndian.Uint64(b[:])), err
}

// The types of the entries of a pack.
const (
	ofsDelta = 6
	refDelta = 7
)

var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// packEntry is an entry of a pack before its content.
type packEntry struct {
	kind int
	size int64 // of the content; of a delta, of the delta itself
	base int64 // of a delta: where what it is based on begins
}

// entry reads the head of the entry at an offset; in is then at its compressed content.
func (p *packFile) entry(in *bufio.Reader, offset int64) (packEntry, error) {
	in.Reset(io.NewSectionReader(p.pack, offset, 1<<62))
	first, err := in.ReadByte()
	if err != nil {
		return packEntry{}, err
	}
	e := packEntry{kind: int(first >> 4 & 7), size: int64(first & 15)}
	for shift, c := 4, first; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 56 {
			return e, errors.Join(errPack, err)
		}
		e.size |= int64(c&0x7f) << shift
	}
	switch e.kind {
	case ofsDelta:
		e.base, err = readDistance(in)
		e.base = offset - e.base
		if err == nil && (e.base <= 0 || e.base >= offset) {
			err = errPack
		}
	case refDelta:
		var name [32]byte
		if _, err := io.ReadFull(in, name[:p.hash]); err != nil {
			return e, err
		}
		var found bool
		e.base, found, err = p.find(name[:p.hash])
		if err == nil && !found {
			err = errPack
		}
	default:
		if packKinds[e.kind] == "" {
			err = errPack
		}
	}
	return e, err
}

// readDistance reads how far before a delta its base begins.
func readDistance(in *bufio.Reader) (int64, error) {
	c, err := in.ReadByte()
	n := int64(c & 0x7f)
	for err == nil && c&0x80 != 0 {
		if n >= 1<<55 {
			return 0, errPack
		}
		c, err = in.ReadByte()
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, err
}

// applyDelta makes an object of its base and a delta.
func applyDelta(base, delta []byte, most int64) ([]byte, error) {
	before, delta, err := deltaSize(delta)
	if err != nil {
		return nil, err
	}
	after, delta, err := deltaSize(delta)
	if err != nil || before != int64(len(base)) || after > most {
		return nil, errors.Join(errPack, err)
	}
	out := make([]byte, 0, after)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		from := delta // of what is inserted
		size := int(op)
		if op&0x80 != 0 {
			var offset int
			if offset, size, delta, err = copyArguments(op, delta); err != nil || offset > len(base) {
				return nil, errPack
			}
			from = base[offset:]
		}
		if size == 0 || size > len(from) || int64(len(out)+size) > after {
			return nil, errPack
		}
		out = append(out, from[:size]...)
		if op&0x80 == 0 {
			delta = delta[size:]
		}
	}
	if int64(len(out)) != after {
		return nil, errPack
	}
	return out, nil
}

// copyArguments reads which part of the base is copied: the bits of op say which bytes of offset and size follow.
func copyArguments(op byte, delta []byte) (offset, size int, rest []byte, err error) {
	var arguments [7]byte
	for i := range arguments {
		if op>>i&1 == 0 {
			continue
		}
		if len(delta) == 0 {
			return 0, 0, nil, errPack
		}
		arguments[i], delta = delta[0], delta[1:]
	}
	offset = int(binary.LittleEndian.Uint32(arguments[:4]))
	size = int(arguments[4]) | int(arguments[5])<<8 | int(arguments[6])<<16
	if size == 0 {
		size = 0x10000
	}
	return offset, size, delta, nil
}

// deltaSize reads one of the two sizes that a delta begins with.
func deltaSize(delta []byte) (size int64, rest []byte, err error) {
	for shift := 0; len(delta) > 0 && shift < 63; shift += 7 {
		c := delta[0]
		delta = delta[1:]
		size |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			return size, delta, nil
		}
	}
	return 0, nil, errPack
}
