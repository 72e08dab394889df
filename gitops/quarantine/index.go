package quarantine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// packIndex finds objects of one pack by its index of version 2 (gitformat-pack(5)), of which it reads what it needs. go-git reads
// all of an index first, 2 ms for 20,000 objects, and none of SHA-256, which [Handover] proves packs of, too.
type packIndex struct {
	file   *os.File
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

// openIndex opens an index whose names have a number of bytes.
func openIndex(name string, hash int) (*packIndex, error) {
	p := &packIndex{hash: hash}
	var err error
	if p.file, err = os.Open(name); err != nil {
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

func (p *packIndex) close() { p.file.Close() }

// find returns where in the pack an object begins; not found is no error.
func (p *packIndex) find(name []byte) (offset int64, found bool, err error) {
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
func (p *packIndex) hold() {
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
func (p *packIndex) offset(n uint32) (int64, error) {
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
