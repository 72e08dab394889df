package quarantine

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the pack format's own checksum
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
// them again.
func packOf(format string, objects []object) []byte {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	z := packWriters.Get().(*zlib.Writer)
	defer func() {
		z.Reset(io.Discard) // the pack is not kept
		packWriters.Put(z)
	}()
	for _, o := range objects {
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
	h := sha1.New() //nolint:gosec // the format's
	if format == "sha256" {
		h = sha256.New()
	}
	h.Write(b.Bytes())
	return h.Sum(b.Bytes())
}

// packKinds are the types of pack entries that are whole objects.
var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// storePack stores a pack of trusted objects in the repository. A few objects become loose objects.
func storePack(ctx context.Context, g *gitops.Git, pack io.Reader, few bool) error {
	args := []string{"unpack-objects", "-q"}
	if !few {
		args = []string{"index-pack", "--stdin", "--fix-thin"}
	}
	return g.Change(ctx, gitops.Call{Args: args, Stdin: pack, Stdout: io.Discard, Apart: true})
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
	return r.Durable().Change(ctx, gitops.Call{Args: []string{"index-pack", "--stdin", "--keep=" + mark}, Stdin: bytes.NewReader(packOf(r.Format, list)),
		Stdout: io.Discard, Apart: true})
}

// ReleaseKept releases all packs that [StoreKept] stored with a mark, also those of a process that died.
func ReleaseKept(r *gitops.Repository, mark string) error {
	keeps, err := filepath.Glob(filepath.Join(gitops.GlobQuote(filepath.Join(r.CommonDir, "objects", "pack")), "*.keep"))
	for _, keep := range keeps {
		if content, readErr := os.ReadFile(keep); readErr == nil && strings.TrimSpace(string(content)) == mark {
			err = errors.Join(err, gitops.Unless(os.Remove(keep), fs.ErrNotExist))
		}
	}
	return err
}
