package land

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the checksum of the format
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// indexFile is an index in memory, of which some entries are looked at and their stat data replaced (gitformat-index(5)). A git process
// that does so reads and writes the whole index, with the user's filters, while a landing has the locks.
type indexFile struct {
	content []byte
	written time.Time      // when git compares the time of a file with it, see racy
	raw     int            // the size of an object name
	at      map[string]int // offsets of the entries with the requested paths
	room    map[string]int // offsets of the entries that would follow those of requested paths without an entry
	end     int            // of the entries
	racy    bool           // one of the other entries may be of a file that changed after git has read it

	attributes []splice // the entries of attribute files
}

// splice is a range of the content, and what takes its place. In a list of attribute files, it is just the range.
type splice struct {
	begin, end int
	by         []byte
}

const (
	indexHeader = 12
	statSize    = 40 // ten numbers: ctime and mtime of two numbers each, device, inode, mode, user, group, size
	modeField   = 24
	sizeField   = 36

	// indexInHand bounds the size of an index in memory.
	indexInHand = 256 << 20

	assumeValid  = 0x8000
	extended     = 0x4000
	stages       = 0x3000
	skipWorktree = 0x4000 // these two are in the extended flags
	intentToAdd  = 0x2000
)

// readIndex reads an index with its entries at some paths. It returns nil if only git can read the index: of another version, or one
// whose entries are in a second file, or stand for folders.
func readIndex(name, format string, changes []gitops.Change) *indexFile {
	info, err := os.Stat(name)
	if err != nil || info.Size() > indexInHand {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	x := &indexFile{content: content, written: info.ModTime(), raw: 20, at: make(map[string]int, len(changes)), room: map[string]int{}}
	if format == "sha256" {
		x.raw = 32
	}
	var fresh []string
	for _, c := range changes {
		if x.at[c.Path] = 0; !c.Old.Present() {
			fresh = append(fresh, c.Path)
		}
	}
	slices.Sort(fresh) // as the entries are
	if !x.find(fresh) {
		return nil
	}
	return x
}

// find finds the entries, and the places for fresh ones. It returns false for an index that only git can read.
func (x *indexFile) find(fresh []string) bool {
	end := len(x.content) - x.raw
	if end < indexHeader || string(x.content[:4]) != "DIRC" {
		return false
	}
	version, pos := binary.BigEndian.Uint32(x.content[4:]), indexHeader
	if version < 2 || version > 4 {
		return false
	}
	var path []byte
	for range binary.BigEndian.Uint32(x.content[8:]) {
		begin := pos
		if pos = x.afterFlags(begin); pos >= end {
			return false
		}
		if version == 4 {
			path, pos = x.shortened(path, pos)
		} else {
			length := bytes.IndexByte(x.content[pos:], 0)
			path, pos = x.content[pos:pos+max(length, 0)], begin+(pos+length-begin+8)&^7
		}
		if len(path) == 0 || pos > end {
			return false
		}
		for len(fresh) > 0 && fresh[0] < string(path) {
			x.room[fresh[0]], fresh = begin, fresh[1:]
		}
		if bytes.HasSuffix(path, []byte(".gitattributes")) {
			x.attributes = append(x.attributes, splice{begin: begin, end: pos})
		}
		switch before, wanted := x.at[string(path)]; {
		case before > 0:
			return false // with a conflict
		case wanted:
			x.at[string(path)] = begin
		default:
			x.racy = x.racy || x.young(begin)
		}
	}
	for _, name := range fresh {
		x.room[name] = pos
	}
	x.end = pos
	return optional(x.content[pos:end])
}

// afterFlags returns the offset behind the flags of an entry, or that of the end.
func (x *indexFile) afterFlags(begin int) int {
	pos := begin + statSize + x.raw + 2
	if pos+2 > len(x.content) {
		return len(x.content)
	}
	if x.flags(begin)&extended != 0 {
		pos += 2
	}
	return pos
}

func (x *indexFile) flags(begin int) uint16 {
	return binary.BigEndian.Uint16(x.content[begin+statSize+x.raw:])
}

// shortened returns the path of an entry of version 4, which begins with a part of the path before it, and the offset behind it.
func (x *indexFile) shortened(before []byte, pos int) (path []byte, next int) {
	cut := 0
	for first := true; pos < len(x.content); first = false {
		b := x.content[pos]
		if !first {
			cut++
		}
		pos, cut = pos+1, cut<<7|int(b&0x7f)
		if b&0x80 == 0 || cut > len(before) {
			break
		}
	}
	length := bytes.IndexByte(x.content[pos:], 0)
	if length < 0 || cut > len(before) {
		return nil, pos
	}
	return append(before[:len(before)-cut], x.content[pos:pos+length]...), pos + length + 1
}

// optional reports whether a program may ignore all of an index's extensions.
func optional(extensions []byte) bool {
	for len(extensions) >= 8 {
		size := uint64(binary.BigEndian.Uint32(extensions[4:])) + 8
		if extensions[0] < 'A' || extensions[0] > 'Z' || size > uint64(len(extensions)) {
			return false
		}
		extensions = extensions[size:]
	}
	return len(extensions) == 0
}

// young reports whether the file of an entry may have changed after git has read it, without another time: it is not older than the
// index (Documentation/technical/racy-git). Where the times of files have no fractions, seconds are compared.
func (x *indexFile) young(begin int) bool {
	seconds, part := binary.BigEndian.Uint32(x.content[begin+8:]), binary.BigEndian.Uint32(x.content[begin+12:])
	if written := uint32(x.written.Unix()); seconds != written || part == 0 {
		return seconds >= written
	}
	return part >= uint32(x.written.Nanosecond())
}

// is reports whether the index has just an entry of a tree at a path, without a conflict or a flag.
func (x *indexFile) is(path string, e gitops.Entry) bool {
	begin := x.at[path]
	if begin == 0 || !e.Present() {
		return begin == 0 && !e.Present()
	}
	flags := x.flags(begin)
	if flags&extended != 0 && binary.BigEndian.Uint16(x.content[begin+statSize+x.raw+2:])&(skipWorktree|intentToAdd) != 0 {
		return false
	}
	id := hex.EncodeToString(x.content[begin+statSize : begin+statSize+x.raw])
	return flags&(assumeValid|stages) == 0 && !e.Gitlink() && id == string(e.OID) &&
		binary.BigEndian.Uint32(x.content[begin+modeField:]) == uint32(e.Mode)
}

// clean reports whether the index and the files at all changed paths are those of the old commit, as far as stat data shows. Otherwise git
// finds out.
func (x *indexFile) clean(changes []gitops.Change, seen map[string]os.FileInfo) bool {
	for _, c := range changes {
		if !x.is(c.Path, c.Old) || c.New.Gitlink() {
			return false
		}
		if !c.Old.Present() {
			continue
		}
		begin, now := x.at[c.Path], statData(seen[c.Path])
		if now == nil || x.young(begin) || !sameStat(x.content[begin:begin+statSize], now) {
			return false
		}
	}
	return true
}

// sameStat compares stat data as git does, without the device. A file without content always differs, since git writes a size of 0 into
// entries that it must look at again.
func sameStat(a, b []byte) bool {
	return bytes.Equal(a[:16], b[:16]) && bytes.Equal(a[20:], b[20:]) && binary.BigEndian.Uint32(a[sizeField:]) > 0
}

// stamp writes the stat data of the files that a landing has just put into their places, as git checkout does, and the index into a file.
// placed are these files before they were renamed. If another file is there now, its entry gets no stat data, so that git reads the file.
func (x *indexFile) stamp(r *gitops.Repository, name string, changes []gitops.Change, placed map[string]os.FileInfo) error {
	for _, c := range changes {
		begin, stat := x.at[c.Path], []byte(nil)
		if info, err := r.Lstat(c.Path); err == nil && sameFile(placed[c.Path], info) && x.is(c.Path, c.New) {
			stat = statData(info)
		}
		if stat != nil {
			copy(stat[modeField:], x.content[begin+modeField:begin+modeField+4])
			copy(x.content[begin:], stat)
		} else {
			x.racy = x.racy || begin > 0 && x.young(begin)
		}
	}
	return x.replace(name)
}

// replace replaces the file of the index, durably.
func (x *indexFile) replace(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	end := len(x.content) - x.raw
	if sum := x.content[end:]; len(bytes.Trim(sum, "\x00")) > 0 { // index.skipHash
		h := x.hash()
		h.Write(x.content[:end])
		copy(sum, h.Sum(nil))
	}
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(x.content)
	now := time.Now()
	if x.racy { // git must look at the files of other entries again, as before
		now = x.written
	}
	return errors.Join(err, f.Chmod(info.Mode().Perm()), os.Chtimes(f.Name(), now, now), f.Sync(), f.Close(), os.Rename(f.Name(), name))
}

func (x *indexFile) hash() hash.Hash {
	if x.raw == sha256.Size {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // the format's
}
