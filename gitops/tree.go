package gitops

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Mode is the kind of a tree entry, as git interprets it. The zero Mode means that there is no entry. Only
// [ParseMode] converts the mode in a tree object to a Mode, so that all code sees the same kind as git.
type Mode uint16

// The valid modes.
const (
	ModeFile       Mode = 0o100644
	ModeExecutable Mode = 0o100755
	ModeLink       Mode = 0o120000
	ModeGitlink    Mode = 0o160000
	ModeFolder     Mode = 0o040000
)

// String returns the mode as git prints it, with six digits.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint16(m)) }

// written returns the mode as git writes it into a tree object.
func (m Mode) written() string { return strconv.FormatUint(uint64(m), 8) }

// ParseMode parses a mode in a tree object. Git adds up octal digits, keeps 16 bits (tree-walk.c, get_mode), and maps the result to the valid mode
// that it resembles (canon_mode). A mode that resembles none is a gitlink. ok is false for a mode that git refuses to read.
func ParseMode(text string) (m Mode, ok bool) {
	var bits uint16
	for i := range len(text) {
		if text[i] < '0' || text[i] > '7' {
			return 0, false
		}
		bits = bits<<3 | uint16(text[i]-'0')
	}
	switch bits & 0o170000 {
	case 0o100000:
		m = ModeFile
		if bits&0o100 != 0 {
			m = ModeExecutable
		}
	case 0o120000:
		m = ModeLink
	case 0o040000:
		m = ModeFolder
	default:
		m = ModeGitlink
	}
	return m, text != ""
}

// ProperMode reports whether a mode is written as git writes it, or as older versions of git did: group-writable files had 100664.
func ProperMode(text string) bool {
	switch text {
	case "100644", "100755", "120000", "160000", "40000", "100664":
		return true
	}
	return false
}

// TreeEntry is one entry of a tree object.
type TreeEntry struct {
	Name string
	Entry
	RawMode string // the mode as written in the tree object; empty for an entry that we made
}

// Folder reports whether the entry is a tree.
func (e Entry) Folder() bool { return e.Mode == ModeFolder }

// Regular reports whether the entry is a regular file, executable or not.
func (e Entry) Regular() bool { return e.Mode == ModeFile || e.Mode == ModeExecutable }

// TreeBytes returns the content of a tree object. The entries must be in git's order.
func TreeBytes(entries []TreeEntry) ([]byte, error) {
	size := 0
	for _, e := range entries {
		size += len("100644 ") + len(e.Name) + 1 + len(e.OID)/2
	}
	b := make([]byte, 0, size)
	for _, e := range entries {
		var err error
		mode := e.RawMode
		if mode == "" {
			mode = e.Mode.written()
		}
		b = append(append(append(append(b, mode...), ' '), e.Name...), 0)
		if b, err = hex.AppendDecode(b, []byte(e.OID)); err != nil {
			return nil, fmt.Errorf("entry %q: %w", e.Name, err)
		}
	}
	return b, nil
}

// SortKey returns the key by which git sorts the entries of a tree.
func (e TreeEntry) SortKey() string {
	if e.Folder() {
		return e.Name + "/"
	}
	return e.Name
}

var errTree = errors.New("an entry is not complete")

// ParseTree parses a tree object, whose entries are "<mode> <name>\0<hash>". Names, modes and hashes are parts of
// two long strings, so that a folder of a million files takes little more memory than its object.
func ParseTree(content []byte, hash int) ([]TreeEntry, error) {
	var count, ends int
	for at := 0; at < len(content); at += ends + 1 + hash {
		if ends = bytes.IndexByte(content[at:], 0); ends < 0 || len(content)-at-ends-1 < hash {
			return nil, errTree
		}
		count++
	}
	entries, text := make([]TreeEntry, 0, count), string(content)
	var hashes strings.Builder
	hashes.Grow(count * hash * 2)
	var digits [64]byte // of one hash
	for at := 0; at < len(text); at += ends + 1 + hash {
		ends = bytes.IndexByte(content[at:], 0)
		mode, name, spaced := strings.Cut(text[at:at+ends], " ")
		m, ok := ParseMode(mode)
		if !spaced || !ok {
			return nil, errTree
		}
		entries = append(entries, TreeEntry{Name: name, Entry: Entry{Mode: m}, RawMode: mode})
		hashes.Write(digits[:hex.Encode(digits[:], content[at+ends+1:at+ends+1+hash])])
	}
	ids := OID(hashes.String())
	for i := range entries {
		entries[i].OID = ids[i*hash*2 : (i+1)*hash*2]
	}
	return entries, nil
}

// Entry is one side of a changed path. The zero Entry means that the path does not exist on that side.
type Entry struct {
	Mode Mode
	OID  OID
}

// Present reports whether the path exists.
func (e Entry) Present() bool { return e.Mode != 0 }

// Gitlink reports whether the entry is a submodule.
func (e Entry) Gitlink() bool { return e.Mode == ModeGitlink }

// Change is one path that differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// Diff lists the paths in which two trees differ. A rename is a removal and an addition. Submodules are included
// even if a .gitmodules file hides them.
func (g *Git) Diff(ctx context.Context, from, to OID) ([]Change, error) {
	records, err := g.Records(ctx, Call{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
		"--ignore-submodules=none", string(from), string(to)}})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(records)/2)
	for i := 0; i+1 < len(records); i += 2 {
		f := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("diff-tree answered %q", Text(records[i]))
		}
		before, err := entry(f[0], f[2])
		if err != nil {
			return nil, err
		}
		after, err := entry(f[1], f[3])
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{Path: records[i+1], Old: before, New: after})
	}
	return changes, nil
}

// entry parses one side of a changed path in git's output.
func entry(mode, id string) (Entry, error) {
	if mode == "000000" {
		return Entry{}, nil
	}
	m, ok := ParseMode(mode)
	if !ok {
		return Entry{}, fmt.Errorf("git printed %q as a mode", Text(mode))
	}
	return Entry{m, OID(id)}, nil
}
