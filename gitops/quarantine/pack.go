package quarantine

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the pack format's own checksum
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// packWriters are the compressors of packOf. Each has more than a megabyte of tables.
var packWriters = sync.Pool{New: func() any {
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	return z
}}

// packOf writes objects as one pack (gitformat-pack(5)). That is the fastest way to store many finished objects, and
// git has no command that stores them unchanged. Compression is fast and weak, because the next git gc compresses
// them again. at are the offsets of the objects.
func packOf(format string, objects []object) (pack []byte, at []int) {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	z := packWriters.Get().(*zlib.Writer)
	defer func() {
		z.Reset(io.Discard) // the pack is not kept
		packWriters.Put(z)
	}()
	for _, o := range objects {
		at = append(at, b.Len())
		// The first byte has the type and four bits of the size, the next bytes have seven bits each.
		size := len(o.content)
		head := byte(slices.Index(packKinds[:], o.kind)<<4 | size&15)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(size & 0x7f)
		}
		b.WriteByte(head)
		z.Reset(&b)
		_, _ = z.Write(o.content)
		_ = z.Close()
	}
	return withSum(format, b.Bytes()), at
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

// indexOf returns the index of a pack in version 2, as git index-pack does. It fails if an object does not have its name.
func indexOf(format string, pack []byte, at []int, objects []object, names []gitops.OID) ([]byte, error) {
	order := make([]int, len(objects))
	var sizes [256]uint32
	for i, o := range objects {
		if id := gitops.HashObject(format, o.kind, o.content); id != names[i] {
			return nil, fmt.Errorf("object %s has the content of %s", names[i], id)
		}
		first, _ := strconv.ParseUint(string(names[i][:2]), 16, 8)
		order[i] = i
		sizes[first]++
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(string(names[a]), string(names[b])) })
	b := []byte(idxMagic)
	total := uint32(0)
	for _, n := range sizes {
		total += n
		b = binary.BigEndian.AppendUint32(b, total)
	}
	for _, i := range order {
		b, _ = hex.AppendDecode(b, []byte(names[i]))
	}
	sum := len(pack) - hashSize(format)
	ends := append(slices.Clone(at[min(1, len(at)):]), sum)
	for _, i := range order {
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(pack[at[i]:ends[i]]))
	}
	for _, i := range order {
		b = binary.BigEndian.AppendUint32(b, uint32(at[i])) //nolint:gosec // the pack is in memory and small
	}
	return withSum(format, append(b, pack[sum:]...)), nil
}

// packKinds are the types of pack entries that are whole objects.
var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// storePack stores trusted objects in the repository, as one pack. A few objects become loose objects.
func storePack(ctx context.Context, g *gitops.Git, format string, objects []object, few bool) error {
	args := []string{"unpack-objects", "-q"}
	if !few {
		args = []string{"index-pack", "--stdin", "--fix-thin"}
	}
	pack, _ := packOf(format, objects)
	return g.Change(ctx, gitops.Call{Args: args, Stdin: bytes.NewReader(pack), Stdout: io.Discard, Apart: true})
}

// looseObject returns the content of a loose object's file (gitformat-loose(5)).
func looseObject(kind string, content []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = fmt.Fprintf(z, "%s %d\x00", kind, len(content))
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}

// Finished is an object whose content is complete.
type Finished struct {
	Kind    string // commit, tree or blob
	Content []byte
}

// StoreKept stores objects in a repository as one pack. No git gc, repack or prune removes the pack until [ReleaseKept] is
// called with the same mark. So the caller can move a ref to the objects in between.
func StoreKept(ctx context.Context, r *gitops.Repository, mark string, objects []Finished) error {
	list := make([]object, len(objects))
	for i, o := range objects {
		list[i] = object{o.Kind, o.Content}
	}
	pack, _ := packOf(r.Format, list)
	return r.Durable().Change(ctx, gitops.Call{Args: []string{"index-pack", "--stdin", "--keep=" + mark}, Stdin: bytes.NewReader(pack),
		Stdout: io.Discard, Apart: true})
}

// ReleaseKept releases all packs that [StoreKept] stored with a mark, also those of a process that died.
func ReleaseKept(r *gitops.Repository, mark string) error {
	var err error
	for _, keep := range gitops.Glob(filepath.Join(r.CommonDir, "objects", "pack"), "*.keep") {
		if content, readErr := os.ReadFile(keep); readErr == nil && strings.TrimSpace(string(content)) == mark {
			err = errors.Join(err, gitops.Unless(os.Remove(keep), fs.ErrNotExist))
		}
	}
	return err
}
