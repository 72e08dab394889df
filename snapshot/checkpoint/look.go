package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// looked is a workspace without the contents that must be read.
type looked struct {
	top     *node
	unread  []unread
	partial bool
}

// unread is a regular file whose content must be read.
type unread struct {
	path string
	node *node
}

// look walks through the workspace, and takes from the last checkpoint what cannot have changed since. base may be nil. With an
// [Unreadable], the result has what could be read.
func (s *Store) look(c *files.Client, base *node, o Options) (l looked, err error) {
	if o.Hinted && o.Recent != nil && base != nil && base == o.Recent.top {
		touched := append(slices.Clone(o.Touched), o.Recent.again...)
		o.Recent.forget() // it is changed
		if l, err = refresh(c, base, touched, o); l.partial || err != nil {
			return l, err
		}
	}
	l.top, err = walk(c, o)
	if err != nil && !errors.As(err, new(*Unreadable)) {
		return l, err
	}
	m := matcher{again: o.Whole}
	m.folder("", base, l.top)
	l.unread = m.unread
	return l, err
}

// matcher compares a walk with the last checkpoint.
type matcher struct {
	again  bool // all contents are read again
	unread []unread
}

// folder takes over the contents of unchanged files, and the objects of folders in which nothing has changed. old may be nil. It
// reports whether nothing has changed.
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

// entry does what folder does for an entry of the folder at a path.
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
	if !m.again && old != nil && old.kind == files.Regular && old.settled && old.Stat == recent.Stat {
		recent.blob, recent.settled, recent.attributes = old.blob, true, old.attributes
		return same
	}
	m.unread = append(m.unread, unread{join(folder, recent.name), recent})
	return false
}

const (
	// perFile is about the memory for a file, without its name.
	perFile = 300
	// mostMemory bounds the memory for a workspace.
	mostMemory = 1 << 30
)

// walk reads what is in the workspace, without contents.
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

// builder makes a tree of the entries of a walk.
type builder struct {
	top     *node
	way     []*node // from the top to the entry before
	refused Unreadable
	left    int64  // bytes of memory
	free    []node // allocated together
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
