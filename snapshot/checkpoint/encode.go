package checkpoint

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// IDs identify the state of a workspace. Two workspaces have the same ids if their files have the same contents, names, types, modes,
// times and link targets.
type IDs struct {
	Tree string // all files without the inner repository's folder
	Git  string // the inner repository's folder; empty if there is none
}

// roots are the ids of the trees of a checkpoint.
type roots struct{ files, meta, git oid }

// sink stores an object that a checkpoint needs, and returns its id.
type sink func(kind string, content []byte) (oid, error)

// ids returns the ids of the state that the trees contain.
func (r roots) ids() IDs {
	ids := IDs{Tree: name("tree", treeOf([]treeEntry{{folderMode, "files", r.files}, {folderMode, "meta", r.meta}})).String()}
	if r.git != (oid{}) {
		ids.Git = r.git.String()
	}
	return ids
}

// root stores the tree of a checkpoint, which contains the other trees, and returns its id.
func (r roots) root(store sink) (oid, error) {
	entries := []treeEntry{{folderMode, "files", r.files}, {folderMode, "meta", r.meta}}
	if r.git != (oid{}) {
		entries = append(entries, treeEntry{folderMode, "git", r.git})
	}
	return store("tree", treeOf(entries))
}

// name returns the id that git gives an object.
func name(kind string, content []byte) (id oid) {
	h := sha1.New() //nolint:gosec // the name of a git object
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	h.Sum(id[:0])
	return id
}

// Modes of tree entries.
const (
	folderMode     = "40000"
	linkMode       = "120000"
	regularMode    = "100644"
	executableMode = "100755"
)

type treeEntry struct {
	mode, name string
	id         oid
}

// treeOf returns the content of a tree. Git sorts a folder as if its name ended in a slash.
func treeOf(entries []treeEntry) []byte {
	key := func(e treeEntry) string {
		if e.mode == folderMode {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.mode + " " + e.name + "\x00")
		b.Write(e.id[:])
	}
	return b.Bytes()
}

// encode stores the trees of a workspace, and returns their ids.
func encode(top *node, store sink) (r roots, err error) {
	git := top.child(gitFolder)
	if git != nil && git.kind == files.Folder {
		without := *top
		without.children = slices.DeleteFunc(slices.Clone(top.children), func(c *node) bool { return c == git })
		top = &without
		if err := encodeFolder(git, store); err != nil {
			return r, err
		}
		if r.git, err = store("tree", treeOf([]treeEntry{{folderMode, "files", git.tree}, {folderMode, "meta", git.meta}})); err != nil {
			return r, err
		}
	}
	if err := encodeFolder(top, store); err != nil {
		return r, err
	}
	r.files, r.meta = top.tree, top.meta
	return r, nil
}

// encodeFolder stores the two trees of a folder: contents, and modes and times. If the folder's trees are known, it does nothing.
func encodeFolder(n *node, store sink) error {
	if n.tree != (oid{}) {
		return nil
	}
	var contents, metas []treeEntry
	list := appendMeta(nil, n, "")
	for _, c := range n.children {
		e := treeEntry{name: treeNameOf(c.name)}
		switch c.kind {
		case files.Folder:
			if err := encodeFolder(c, store); err != nil {
				return err
			}
			e.mode, e.id = folderMode, c.tree
			metas = append(metas, treeEntry{folderMode, e.name, c.meta})
		case files.Regular:
			e.mode, e.id = regularMode, c.blob
			if c.mode&0o100 != 0 {
				e.mode = executableMode
			}
			list = appendMeta(list, c, e.name)
		case files.Link:
			id, err := store("blob", []byte(c.target))
			if err != nil {
				return err
			}
			e.mode, e.id = linkMode, id
			list = appendMeta(list, c, e.name)
		default:
			continue // special files are only counted, by [Taken.count]
		}
		contents = append(contents, e)
	}
	id, err := store("blob", list)
	if err != nil {
		return err
	}
	if n.tree, err = store("tree", treeOf(contents)); err != nil {
		return err
	}
	n.meta, err = store("tree", treeOf(append(metas, treeEntry{regularMode, metaName, id})))
	return err
}

// appendMeta adds the line of a file to its folder's list: mode, time, and escaped name. The folder itself has an empty name.
func appendMeta(list []byte, n *node, escaped string) []byte {
	list = strconv.AppendUint(list, uint64(n.mode), 8)
	list = append(list, ' ')
	list = appendTime(list, n.mtime)
	list = append(list, ' ')
	list = append(list, escaped...)
	return append(list, '\n')
}

// meta is a line of a folder's list.
type meta struct {
	mode  uint32
	mtime files.Time
}

// parseMeta reads a folder's list.
func parseMeta(list []byte) (map[string]meta, error) {
	parsed := map[string]meta{}
	for line := range bytes.Lines(list) {
		mode, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		mtime, name, found := strings.Cut(rest, " ")
		bits, modeErr := strconv.ParseUint(mode, 8, 12)
		at, timeErr := parseTime(mtime)
		if err := errors.Join(modeErr, timeErr); err != nil || !found {
			return nil, fmt.Errorf("line %q in a checkpoint: %w", line, err)
		}
		parsed[name] = meta{uint32(bits), at}
	}
	return parsed, nil
}

// appendTime adds a time as the number of nanoseconds since 1970.
func appendTime(list []byte, t files.Time) []byte {
	if t.Sec > mostSeconds || t.Sec < -mostSeconds {
		n := big.NewInt(t.Sec)
		return n.Mul(n, big.NewInt(second)).Add(n, big.NewInt(t.Nsec)).Append(list, 10)
	}
	return strconv.AppendInt(list, t.Sec*second+t.Nsec, 10)
}

// parseTime reads a time that appendTime has written.
func parseTime(text string) (files.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		t := files.Time{Sec: n / second, Nsec: n % second}
		if t.Nsec < 0 {
			t.Sec, t.Nsec = t.Sec-1, t.Nsec+second
		}
		return t, nil
	}
	const most = 30 // digits and the sign; a larger number is not a time
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || len(text) > most {
		return files.Time{}, fmt.Errorf("time %q", text)
	}
	nanoseconds := new(big.Int)
	n.DivMod(n, big.NewInt(second), nanoseconds)
	if !n.IsInt64() {
		return files.Time{}, fmt.Errorf("time %q", text)
	}
	return files.Time{Sec: n.Int64(), Nsec: nanoseconds.Int64()}, nil
}

const (
	second      = int64(time.Second)
	mostSeconds = math.MaxInt64/second - 1 // so that the nanoseconds are an int64
)
