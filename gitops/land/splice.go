package land

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/git-airlock/git-airlock/gitops"
)

// maxNamed is the largest length of a path that the flags of an entry can have.
const maxNamed = 0xfff

// entryOf returns an entry of version 2 or 3 without stat data.
func (x *indexFile) entryOf(name string, e gitops.Entry) []byte {
	b := make([]byte, statSize, statSize+x.raw+2+len(name)+8)
	binary.BigEndian.PutUint32(b[modeField:], uint32(e.Mode))
	b, _ = hex.AppendDecode(b, []byte(e.OID))
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(name), maxNamed))) //nolint:gosec // bounded
	b = append(b, name...)
	return append(b, make([]byte, 8-len(b)%8)...)
}

// small returns an index that has only the new entries and those of attribute files. Git writes the new files according to it.
func (x *indexFile) small(changes []gitops.Change) []byte {
	entries := map[string][]byte{}
	for _, a := range x.attributes {
		name, _, _ := bytes.Cut(x.content[x.afterFlags(a.begin):a.end], []byte{0})
		entries[string(name)] = x.content[a.begin:a.end]
	}
	for _, c := range changes {
		if c.New.Present() {
			entries[c.Path] = x.entryOf(c.Path, c.New)
		}
	}
	b := bytes.Clone(x.content[:indexHeader])
	binary.BigEndian.PutUint32(b[8:], uint32(len(entries))) //nolint:gosec // there are fewer than in the index and the changes
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		b = append(b, entries[name]...)
	}
	h := x.hash()
	h.Write(b)
	return h.Sum(b)
}

// enter makes the changes in the index, which must have the old entries. It returns false if only git can make them: if the index shortens paths,
// if an extension would have to change with the entries, if a change is one of a submodule, or if a file replaces a folder. trees returns the
// trees of a folder before and after the changes.
func (x *indexFile) enter(changes []gitops.Change, trees func(folder string) [2]gitops.OID) bool {
	if binary.BigEndian.Uint32(x.content[4:]) > 3 {
		return false
	}
	folders := changedFolders(changes, trees)
	var edits []splice
	count := x.count
	for _, c := range changes {
		if folders[c.Path] != nil || c.New.Gitlink() || c.Old.Gitlink() {
			return false
		}
		at := splice{begin: x.at[c.Path]}
		if c.Old.Present() {
			at.end = x.endOf(at.begin)
			count--
		} else {
			at.begin = x.room[c.Path]
			at.end = at.begin
		}
		if c.New.Present() {
			at.by = x.entryOf(c.Path, c.New)
			count++
		}
		edits = append(edits, at)
	}
	extensions, ok := withFolders(x.extensions, folders, x.raw)
	if !ok {
		return false
	}
	slices.SortFunc(edits, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), bytes.Compare(x.nameOf(a.by), x.nameOf(b.by)))
	})
	x.apply(edits, count, extensions)
	return true
}

// nameOf returns the path in a new entry.
func (x *indexFile) nameOf(entry []byte) []byte {
	if len(entry) == 0 {
		return nil
	}
	return entry[statSize+x.raw+2:]
}

// endOf returns the offset behind an entry of version 2 or 3.
func (x *indexFile) endOf(begin int) int {
	pos := x.afterFlags(begin)
	return begin + (pos+bytes.IndexByte(x.content[pos:], 0)-begin+8)&^7
}

// apply makes the edits of the entries, which are in order, and replaces all extensions. It does not copy the other entries, since an index can
// have megabytes.
func (x *indexFile) apply(edits []splice, count uint32, extensions []byte) {
	head := bytes.Clone(x.content[:indexHeader])
	binary.BigEndian.PutUint32(head[8:], count)
	x.count, x.extensions, x.entered = count, extensions, make(map[string][]byte, len(edits))
	x.parts = []part{{content: head}}
	from := indexHeader
	for _, e := range edits {
		x.parts = append(x.parts, part{content: x.content[from:e.begin]}, part{e.by, true})
		if from = e.end; len(e.by) > 0 {
			x.entered[string(bytes.TrimRight(x.nameOf(e.by), "\x00"))] = e.by
		}
	}
	x.parts = append(x.parts, part{content: x.content[from:x.end]}, part{content: extensions})
}

// folder is a folder with changes.
type folder struct {
	trees [2]gitops.OID // before and after them; empty: not known
	more  int           // the files that it gains
}

// changedFolders returns the folders with changes. If the changes add or remove a folder, no tree is known, because git must find out which other
// folders change.
func changedFolders(changes []gitops.Change, trees func(folder string) [2]gitops.OID) map[string]*folder {
	folders, known := map[string]*folder{}, true
	for _, c := range changes {
		more := 0
		if c.New.Present() {
			more++
		}
		if c.Old.Present() {
			more--
		}
		for dir := path.Dir(c.Path); ; dir = path.Dir(dir) {
			if folders[dir] == nil {
				folders[dir] = &folder{trees: trees(dir)}
				known = known && folders[dir].trees[0] != "" && folders[dir].trees[1] != ""
			}
			if folders[dir].more += more; dir == "." {
				break
			}
		}
	}
	for _, f := range folders {
		if !known {
			f.trees = [2]gitops.OID{}
		}
	}
	return folders
}

// withFolders returns the extensions of an index after the changes. In the extension with trees, changed folders get their new trees, or none if
// these are not known. It leaves out the extensions with positions of entries, which only make reading faster. It returns false if there is any
// other extension.
func withFolders(extensions []byte, folders map[string]*folder, raw int) (kept []byte, ok bool) {
	for len(extensions) > 0 {
		size := 8 + int(binary.BigEndian.Uint32(extensions[4:])) // optional has checked it
		switch data := extensions[8:size]; string(extensions[:4]) {
		case "TREE":
			trees, rest, ok := renew(nil, data, "", folders, raw)
			if !ok || len(rest) > 0 {
				return nil, false
			}
			kept = append(binary.BigEndian.AppendUint32(append(kept, "TREE"...), uint32(len(trees))), trees...) //nolint:gosec // hardly longer than before
		case "EOIE", "IEOT":
		default:
			return nil, false
		}
		extensions = extensions[size:]
	}
	return kept, true
}

// renew appends a folder of the extension TREE, with those below it.
func renew(to, data []byte, above string, folders map[string]*folder, raw int) (trees, rest []byte, ok bool) {
	name, data, found := bytes.Cut(data, []byte{0})
	line, data, ended := bytes.Cut(data, []byte("\n"))
	entries, below, parted := bytes.Cut(line, []byte(" "))
	n, err := strconv.Atoi(string(below))
	if !found || !ended || !parted || err != nil || n > len(data) {
		return nil, nil, false
	}
	id := []byte(nil)
	if !bytes.HasPrefix(entries, []byte("-")) {
		if len(data) < raw {
			return nil, nil, false
		}
		id, data = data[:raw], data[raw:]
	}
	dir := path.Join(above, string(name))
	if f := folders[cmp.Or(dir, ".")]; f != nil {
		entries, id = f.renewed(entries, id)
	}
	to = append(append(append(append(append(to, name...), 0), entries...), ' '), below...)
	to = append(append(to, '\n'), id...)
	for ok = true; ok && n > 0; n-- {
		to, data, ok = renew(to, data, dir, folders, raw)
	}
	return to, data, ok
}

// renewed returns the number of entries and the tree of the folder after the changes, or that git must compute them again.
func (f *folder) renewed(entries, id []byte) (count, tree []byte) {
	n, err := strconv.Atoi(string(entries))
	tree, _ = hex.DecodeString(string(f.trees[1]))
	if err != nil || len(tree) == 0 || hex.EncodeToString(id) != string(f.trees[0]) {
		return []byte("-1"), nil
	}
	return strconv.AppendInt(nil, int64(n+f.more), 10), tree
}

// has reports whether the entries of the index are exactly those of a tree, according to its extension TREE.
func (x *indexFile) has(tree gitops.OID) bool {
	for rest := x.extensions; len(rest) > 0; {
		size := 8 + int(binary.BigEndian.Uint32(rest[4:])) // optional has checked it
		if string(rest[:4]) == "TREE" {
			line, id, _ := bytes.Cut(rest[8:size], []byte("\n"))
			return bytes.HasPrefix(line, fmt.Appendf(nil, "\x00%d ", x.count)) && len(id) >= x.raw && hex.EncodeToString(id[:x.raw]) == string(tree)
		}
		rest = rest[size:]
	}
	return false
}
