// Package packing writes packs of finished objects, and stores them (gitformat-pack(5)).
//
// Git has no command that stores many finished objects unchanged.
package packing

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the pack format's own checksum
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// Object is an object whose content is complete.
type Object struct {
	Kind    string // commit, tree or blob
	Content []byte

	packed func() []byte // the compressed content, if it is made ahead
}

// writers are the compressors of packs. Each has more than a megabyte of tables.
var writers = sync.Pool{New: func() any {
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	return z
}}

// Pack writes objects as one pack. That is the fastest way to store many finished objects. Compression is fast and weak, because the
// next git gc compresses them again. at are the offsets of the objects.
func Pack(format string, objects []Object) (pack []byte, at []int) {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	for _, o := range objects {
		at = append(at, b.Len())
		o.writeHead(&b)
		if o.packed != nil {
			b.Write(o.packed())
		} else {
			o.deflate(&b)
		}
	}
	return withSum(format, b.Bytes()), at
}

// Ahead begins to compress the object in the background, and returns an object that uses the result.
func (o Object) Ahead() Object {
	plain := o
	o.packed = sync.OnceValue(func() []byte {
		var b bytes.Buffer
		plain.deflate(&b)
		return b.Bytes()
	})
	go o.packed()
	return o
}

// writeHead writes the beginning of an entry. The first byte has the type and four bits of the size, the next bytes have seven bits each.
func (o Object) writeHead(b *bytes.Buffer) {
	size := len(o.Content)
	head := byte(slices.Index(kinds[:], o.Kind)<<4 | size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b.WriteByte(head | 0x80)
		head = byte(size & 0x7f)
	}
	b.WriteByte(head)
}

func (o Object) deflate(b *bytes.Buffer) {
	z := writers.Get().(*zlib.Writer)
	z.Reset(b)
	_, _ = z.Write(o.Content)
	_ = z.Close()
	z.Reset(io.Discard) // what was written is not kept
	writers.Put(z)
}

// withSum appends the checksum of a pack or its index.
func withSum(format string, content []byte) []byte {
	h := sha1.New() //nolint:gosec // the format's
	if format == "sha256" {
		h = sha256.New()
	}
	h.Write(content)
	return h.Sum(content)
}

// Check fails if an object does not have its name.
func Check(format string, objects []Object, names []gitops.OID) error {
	for i, o := range objects {
		if id := gitops.HashObject(format, o.Kind, o.Content); id != names[i] {
			return fmt.Errorf("object %s has the content of %s", names[i], id)
		}
	}
	return nil
}

// Index returns the index of a pack in version 2, as git index-pack does. The caller knows that the objects have these names.
func Index(format string, pack []byte, at []int, names []gitops.OID) []byte {
	order := make([]int, len(names))
	var sizes [256]uint32
	for i, name := range names {
		first, _ := strconv.ParseUint(string(name[:2]), 16, 8)
		order[i] = i
		sizes[first]++
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(string(names[a]), string(names[b])) })
	b := []byte(IndexMagic)
	total := uint32(0)
	for _, n := range sizes {
		total += n
		b = binary.BigEndian.AppendUint32(b, total)
	}
	for _, i := range order {
		b, _ = hex.AppendDecode(b, []byte(names[i]))
	}
	sum := len(pack) - HashSize(format)
	ends := append(slices.Clone(at[min(1, len(at)):]), sum)
	for _, i := range order {
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(pack[at[i]:ends[i]]))
	}
	for _, i := range order {
		b = binary.BigEndian.AppendUint32(b, uint32(at[i])) //nolint:gosec // the pack is in memory and small
	}
	return withSum(format, append(b, pack[sum:]...))
}

// IndexMagic begins an index of version 2.
const IndexMagic = "\xfftOc\x00\x00\x00\x02"

// HashSize returns the number of bytes of an object name.
func HashSize(format string) int {
	if format == "sha256" {
		return sha256.Size
	}
	return sha1.Size
}

// kinds are the types of pack entries that are whole objects.
var kinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// Store stores trusted objects in the repository, as one pack. A few objects become loose objects.
func Store(ctx context.Context, g *gitops.Git, format string, objects []Object, few bool) error {
	args := []string{"unpack-objects", "-q"}
	if !few {
		args = []string{"index-pack", "--stdin", "--fix-thin"}
	}
	pack, _ := Pack(format, objects)
	return g.Change(ctx, gitops.Call{Args: args, Stdin: bytes.NewReader(pack), Stdout: io.Discard, Apart: true})
}

// Loose returns the content of a loose object's file (gitformat-loose(5)).
func Loose(kind string, content []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = fmt.Fprintf(z, "%s %d\x00", kind, len(content))
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}
