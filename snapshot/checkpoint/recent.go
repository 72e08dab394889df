package checkpoint

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Recent keeps the state of the last checkpoint in memory, for a process that makes many checkpoints. The zero value knows nothing.
type Recent struct {
	index
	again []string // folders to list next time, see [Taken]
}

func (r *Recent) forget() { *r = Recent{} }

// Save writes the state for processes without a Recent, and makes all checkpoints survive a power failure.
func (s *Store) Save(r *Recent) error {
	if r.top == nil {
		return nil
	}
	return errors.Join(s.syncNames(), s.writeIndex(&r.index))
}

// base returns the state of the newest checkpoint, from r if r has it.
func (s *Store) base(r *Recent) *index {
	if r == nil {
		return s.readIndex()
	}
	if r.top == nil || r.number != s.last() {
		r.forget()
		return s.readIndex()
	}
	return &index{r.number, r.top}
}

// refresher updates a state by listing some of its folders.
type refresher struct {
	matcher
	refused Unreadable
	left    int64 // bytes of memory that may still be used
	broken  bool  // the state and the folders do not fit together, so a whole walk is needed
}

// refresh lists the touched folders, and folders that the state does not contain yet. It changes the state at top. If the state and the
// folders do not fit together, the result has partial unset, and the caller must walk through the whole workspace.
func refresh(c *files.Client, top *node, touched []string, o Options) (l scanned, err error) {
	slices.Sort(touched)
	r := refresher{left: cmp.Or(o.Memory, mostMemory)}
	var paths []string
	var found []*node
	for _, path := range slices.Compact(touched) {
		if n := top.reach(path, false); n != nil {
			paths, found = append(paths, path), append(found, n)
		}
	}
	lists := make([][]files.Entry, len(paths))
	missing := func(int, string) { r.broken = true }
	err = c.List(paths, false, func(n int, e files.Entry) error {
		lists[n] = append(lists[n], e)
		if r.left -= int64(perFile + len(e.Name) + len(e.Target)); r.left < 0 {
			return errTooMany
		}
		return nil
	}, missing)
	if err != nil || r.broken {
		return l, err
	}
	var unknown []*node // folders that the state does not contain yet
	var unknownPaths []string
	for i, path := range paths {
		if top.reach(path, true) != found[i] {
			continue // another folder has replaced this one, and is in unknown
		}
		for _, n := range r.renew(path, found[i], lists[i]) {
			unknown, unknownPaths = append(unknown, n), append(unknownPaths, join(path, n.name))
		}
	}
	if err := r.learn(c, unknownPaths, unknown); err != nil || r.broken {
		return l, err
	}
	l = scanned{top: top, unread: r.unread, partial: true}
	if r.refused.Count > 0 {
		return l, &r.refused
	}
	return l, nil
}

// reach returns the folder at a path below n. It is nil if there is none. With forget, it forgets the objects of all folders on the way.
func (n *node) reach(path string, forget bool) *node {
	for {
		if n == nil || n.kind != files.Folder {
			return nil
		}
		if forget {
			n.tree, n.meta = oid{}, oid{}
		}
		if path == "" {
			return n
		}
		var name string
		name, path, _ = strings.Cut(path, "/")
		n = n.child(name)
	}
}

// renew replaces the entries of a folder. It returns the entries that are new folders, whose own entries are unknown.
func (r *refresher) renew(path string, f *node, list []files.Entry) (unknown []*node) {
	self := list[0]
	f.mode, f.mtime, f.Stat = self.Mode, self.Mtime, self.Stat
	if self.Error != "" {
		r.refused.add(path, self.Error)
		return nil
	}
	children := make([]*node, 0, len(list)-1)
	for _, e := range list[1:] {
		old := f.child(e.Name)
		if e.Error != "" {
			r.refused.add(join(path, e.Name), e.Error)
		}
		if e.Kind == files.Folder && old != nil && old.kind == files.Folder && old.Inode == e.Inode && old.Device == e.Device {
			if old.mode != e.Mode || old.mtime != e.Mtime {
				old.tree, old.meta = oid{}, oid{}
			}
			old.mode, old.mtime, old.Stat = e.Mode, e.Mtime, e.Stat
			children = append(children, old)
			continue
		}
		n := &node{name: e.Name, kind: e.Kind, mode: e.Mode, mtime: e.Mtime, target: e.Target, Stat: e.Stat, links: e.Links}
		children = append(children, n)
		if n.kind == files.Folder {
			unknown = append(unknown, n)
			continue
		}
		r.check(old, n)
		r.entry(path, old, n)
	}
	f.children = children
	return unknown
}

// check requires a whole walk if a file has got a second name: a write through one name is reported only in that name's folder, and the
// state does not know yet that both names belong to one file.
func (r *refresher) check(old, n *node) {
	if n.kind == files.Regular && n.links > 1 && (old == nil || old.links <= 1 || old.Inode != n.Inode) {
		r.broken = true
	}
}

// learn adds everything below new folders to the state.
func (r *refresher) learn(c *files.Client, paths []string, folders []*node) error {
	builders := make([]builder, len(paths))
	err := c.List(paths, true, func(n int, e files.Entry) error {
		if builders[n].top == nil {
			e.Name = folders[n].name
		}
		builders[n].left = r.left
		err := builders[n].add(e)
		r.left = builders[n].left
		return err
	}, func(int, string) { r.broken = true })
	if err != nil || r.broken {
		return err
	}
	for i, b := range builders {
		for _, path := range b.refused.Paths {
			r.refused.add(join(paths[i], path), b.refused.Reason)
		}
		r.refused.Count += b.refused.Count - len(b.refused.Paths)
		*folders[i] = *b.top
		for _, n := range b.top.all() {
			r.check(nil, n)
		}
		r.folder(paths[i], nil, folders[i])
	}
	return nil
}
