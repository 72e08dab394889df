package land

import (
	"bufio"
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

// indexFile is an index in memory (gitformat-index(5)). A landing examines some of its entries, and replaces their stat data. A git process for
// this would read and write the whole index, and run the user's filters, while the landing has the locks.
type indexFile struct {
	content    []byte         // as it was read
	written    time.Time      // modification time of the index, with which git compares the times of files; see racy
	raw        int            // the size of an object name
	count      uint32         // of entries
	at         map[string]int // offsets of the entries with the requested paths
	room       map[string]int // offsets of the entries that would follow those of requested paths without an entry
	end        int            // of the entries
	extensions []byte
	racy       bool // one of the other entries may be of a file that changed after git has read it

	attributes []splice // the entries of attribute files

	entered map[string][]byte // new entries, by path, which are among the parts
	parts   []part            // the index to be written, without its checksum
}

// part is a range of an index that is written.
type part struct {
	content []byte
	entry   bool // a new entry, which has no stat data at first
}

// splice is a range of the content, and the bytes that replace it. In a list of attribute files, only the range is set.
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

// readIndex reads the index in a file, see [parseIndex].
func readIndex(name, format string, changes []gitops.Change) *indexFile {
	info, err := os.Stat(name)
	if err != nil || info.Size() > indexInHand {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return parseIndex(content, info.ModTime(), format, changes)
}

// parseIndex reads an index, and finds its entries at the changed paths. It returns nil if only git can read the index: if it has another version
// than 2 to 4, a part of its entries in a second file, or entries that stand for folders.
func parseIndex(content []byte, written time.Time, format string, changes []gitops.Change) *indexFile {
	x := &indexFile{content: content, written: written, raw: 20, at: make(map[string]int, len(changes)), room: map[string]int{}}
	if format == "sha256" {
		x.raw = 32
	}
	var fresh []string
	for _, c := range changes {
		if x.at[c.Path] = 0; !c.Old.Present() {
			fresh = append(fresh, c.Path)
		}
	}
	slices.Sort(fresh) // the entries of an index are in this order
	if !x.find(fresh) {
		return nil
	}
	return x
}

// find finds the entries at the changed paths, and the places at which entries for the paths in fresh belong. It returns false for an index that
// only git can read.
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
	x.count = binary.BigEndian.Uint32(x.content[8:])
	for range x.count {
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
			return false // a second entry for the path: there is a conflict
		case wanted:
			x.at[string(path)] = begin
		default:
			x.racy = x.racy || x.young(begin)
		}
	}
	for _, name := range fresh {
		x.room[name] = pos
	}
	x.end, x.extensions = pos, x.content[pos:end]
	return optional(x.extensions)
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

// shortened returns the path of an entry of version 4, and the offset behind it. Such an entry contains only the part of its path that differs from
// the path before.
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

// young reports whether an entry's file is not older than the index. Such a file may have changed after git has read it without getting another
// time (Documentation/technical/racy-git). Where the times of files have no fractions, young compares seconds.
func (x *indexFile) young(begin int) bool {
	seconds, part := binary.BigEndian.Uint32(x.content[begin+8:]), binary.BigEndian.Uint32(x.content[begin+12:])
	if written := uint32(x.written.Unix()); seconds != written || part == 0 {
		return seconds >= written
	}
	return part >= uint32(x.written.Nanosecond())
}

// is reports whether the index has exactly the entry e at a path, without a conflict or a flag.
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

// clean reports whether the stat data shows that the index and the files at all changed paths are those of the old commit. If it does not, git
// must compare them.
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

// sameStat compares stat data as git does, without the device. It reports a file without content as different, since git writes a size of 0 into
// entries whose files it must read again.
func sameStat(a, b []byte) bool {
	return bytes.Equal(a[:16], b[:16]) && bytes.Equal(a[20:], b[20:]) && binary.BigEndian.Uint32(a[sizeField:]) > 0
}

// stamp puts the stat data of the files that a landing has just renamed into place into their entries, as git checkout does, and writes the index
// to its file. placed has these files as they were renamed. If another file is in such a place now, its entry gets no stat data, so that git
// reads the file.
func (x *indexFile) stamp(r *gitops.Repository, name string, changes []gitops.Change, placed map[string]os.FileInfo) error {
	for _, c := range changes {
		begin := x.at[c.Path]
		if begin == 0 {
			continue
		}
		entry := x.content[begin : begin+statSize]
		if !x.is(c.Path, c.New) || !restat(entry, r, c.Path, placed) {
			x.racy = x.racy || x.young(begin)
		}
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	x.parts = []part{{content: x.content[:len(x.content)-x.raw]}}
	return errors.Join(x.write(name, info.Mode().Perm()), x.complete(name))
}

// restat replaces the stat data of an entry by that of the file that a landing has renamed into place. It returns false if another file is there now.
func restat(entry []byte, r *gitops.Repository, path string, placed map[string]os.FileInfo) bool {
	info, err := r.Lstat(path)
	stat := statData(info)
	if err != nil || stat == nil || !sameFile(placed[path], info) {
		return false
	}
	copy(stat[modeField:], entry[modeField:modeField+4])
	copy(entry, stat)
	return true
}

// stampEntered is like stamp for the entries that the landing has entered itself, in an index that is already written except for these entries.
func (x *indexFile) stampEntered(r *gitops.Repository, name string, placed map[string]os.FileInfo) error {
	for path, entry := range x.entered {
		restat(entry, r, path, placed)
	}
	return x.complete(name)
}

// unfinished is the name of an index that is not complete yet.
func unfinished(name string) string { return name + ".new" }

// write writes the index to the disk beside the file that it will replace. This takes most of the time.
func (x *indexFile) write(name string, mode os.FileMode) error {
	f, err := os.OpenFile(unfinished(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	for _, p := range x.parts {
		_, _ = out.Write(p.content) // Flush returns its error
	}
	return errors.Join(out.Flush(), f.Chmod(mode), f.Sync(), f.Close())
}

// complete writes the entries that got their stat data after write, and the checksum. Then it renames the index into place, durably.
func (x *indexFile) complete(name string) error {
	f, err := os.OpenFile(unfinished(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var errs []error
	h, at := x.hash(), int64(0)
	for _, p := range x.parts {
		if h.Write(p.content); p.entry {
			_, err := f.WriteAt(p.content, at)
			errs = append(errs, err)
		}
		at += int64(len(p.content))
	}
	sum := x.content[len(x.content)-x.raw:]
	if len(bytes.Trim(sum, "\x00")) > 0 { // index.skipHash
		sum = h.Sum(nil)
	}
	_, err = f.WriteAt(sum, at)
	now := time.Now()
	if x.racy { // git must still read the files of other entries again
		now = x.written
	}
	return errors.Join(append(errs, err, os.Chtimes(f.Name(), now, now), f.Sync(), f.Close(), os.Rename(f.Name(), name))...)
}

func (x *indexFile) hash() hash.Hash {
	if x.raw == sha256.Size {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // the format's
}
