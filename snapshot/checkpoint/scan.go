package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// scanned is the result of [Store.scan]: a workspace, and the files in it whose contents must still be read.
type scanned struct {
	top     *node
	unread  []unread
	partial bool // only the touched folders were listed
}

// unread is a regular file whose content must still be read.
type unread struct {
	path string
	node *node
}

// scan walks through the workspace. It takes from base, the last checkpoint's state, what cannot have changed since; base may be nil. If
// the error is an [Unreadable], the result lacks what could not be read.
func (s *Store) scan(c *files.Client, base *node, o Options) (l scanned, err error) {
	if o.Hinted && o.Recent != nil && base != nil && base == o.Recent.top {
		touched := append(slices.Clone(o.Touched), o.Recent.again...)
		o.Recent.forget() // the refresh below changes the state of Recent
		if l, err = refresh(c, base, touched, o); l.partial || err != nil {
			return l, err
		}
	}
	l.top, err = walk(c, o)
	if err != nil && !errors.As(err, new(*Unreadable)) {
		return l, err
	}
	m := matcher{again: o.Whole, walked: true}
	m.folder("", base, l.top)
	l.unread = m.unread
	return l, err
}

// matcher compares the result of a walk with the last checkpoint.
type matcher struct {
	again  bool // all contents must be read again
	walked bool // contents that a shared mapping may have changed must be read again
	unread []unread
}

// folder copies the contents of unchanged files from old to recent, and the objects of unchanged folders. old may be nil. It reports
// whether nothing has changed.
func (m *matcher) folder(path string, old, recent *node) bool {
	same := old != nil && old.kind == files.Folder && old.mode == recent.mode && old.mtime == recent.mtime && old.tree != oid{}
	var before []*node
	if old != nil {
		before = old.children
	}
	for _, c := range recent.children {
		for len(before) > 0 && before[0].name < c.name {
			same = same && before[0].kind == files.Special
			before = before[1:]
		}
		var o *node
		if len(before) > 0 && before[0].name == c.name {
			o, before = before[0], before[1:]
		}
		same = m.entry(path, o, c) && same
	}
	for _, o := range before {
		same = same && o.kind == files.Special
	}
	if same {
		recent.tree, recent.meta = old.tree, old.meta
	}
	return same
}

// entry does what folder does for an entry of a folder, whose path is folder.
func (m *matcher) entry(folder string, old, recent *node) (same bool) {
	if recent.kind == files.Folder {
		if old != nil && old.kind != files.Folder {
			old = nil
		}
		return m.folder(join(folder, recent.name), old, recent)
	}
	if recent.kind == files.Special {
		return old == nil || old.kind == files.Special
	}
	same = old != nil && old.kind == recent.kind && old.mode == recent.mode && old.mtime == recent.mtime && old.target == recent.target
	if recent.kind == files.Link {
		return same
	}
	if !m.again && old != nil && old.kind == files.Regular && old.stable && (old.lasting || !m.walked) && old.Stat == recent.Stat {
		recent.blob, recent.stable, recent.lasting, recent.attributes = old.blob, true, old.lasting, old.attributes
		return same
	}
	m.unread = append(m.unread, unread{join(folder, recent.name), recent})
	return false
}

const (
	// perFile is about the number of bytes of memory for a file, without its name.
	perFile = 300
	// mostMemory limits the memory for a workspace, in bytes.
	mostMemory = 1 << 30
)

// walk reads which files are in the workspace, without their contents.
func walk(c *files.Client, o Options) (*node, error) {
	b := builder{left: cmp.Or(o.Memory, mostMemory)}
	err := c.Walk(o.Opens, b.add)
	switch {
	case err != nil:
		return nil, fmt.Errorf("walk the workspace: %w", err)
	case b.refused.Count > 0:
		return b.top, &b.refused
	case b.top == nil:
		return nil, errors.New("walk the workspace: nothing came")
	}
	return b.top, nil
}

var errTooMany = errors.New("too many files")

// builder makes a tree of nodes from the entries of a walk.
type builder struct {
	top     *node
	way     []*node // the nodes from the top to the previous entry
	refused Unreadable
	left    int64  // bytes of memory that may still be used
	free    []node // nodes that were allocated together and are not used yet
}

func (b *builder) add(e files.Entry) error {
	if b.left -= int64(perFile + len(e.Name) + len(e.Target)); b.left < 0 {
		return errTooMany
	}
	if len(b.free) == 0 {
		b.free = make([]node, 256)
	}
	n := &b.free[0]
	b.free = b.free[1:]
	*n = node{name: e.Name, kind: e.Kind, mode: e.Mode, mtime: e.Mtime, target: e.Target, Stat: e.Stat, links: e.Links, opened: e.Opened}
	b.way = append(b.way[:e.Depth], n)
	if e.Error != "" {
		b.refused.add(pathOf(b.way), e.Error)
	}
	if e.Depth == 0 {
		b.top = n
		return nil
	}
	parent := b.way[e.Depth-1]
	if parent.kind != files.Folder {
		return fmt.Errorf("%q is in %q, which is not a folder", e.Name, parent.name)
	}
	parent.children = append(parent.children, n)
	return nil
}

func pathOf(way []*node) (path string) {
	for _, n := range way[min(1, len(way)):] {
		path = join(path, n.name)
	}
	return path
}
