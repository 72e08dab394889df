package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// walker reads the folders of a tree along paths that come in git's order, so that each is read once and only
// those above the present path are kept.
type walker struct {
	objects Objects
	root    gitops.OID
	stack   []*folder
}

// folder is one folder of a tree.
type folder struct {
	path    string
	entries map[string]gitops.Entry
	names   map[string]*alikes // by what is the same to some file system
}

func newWalker(objects Objects, root gitops.OID) *walker {
	return &walker{objects: objects, root: root}
}

// at returns the folder at a path, empty for the top; nil if there is none. Asking for a folder above the
// present one keeps the present one.
func (w *walker) at(ctx context.Context, path string) (*folder, error) {
	for n := len(w.stack) - 1; n >= 0; n-- {
		above := w.stack[n].path
		if above == path {
			return w.stack[n], nil
		}
		if above == "" || strings.HasPrefix(path, above+"/") {
			w.stack = w.stack[:n+1]
			return w.down(ctx, path)
		}
	}
	if w.root == "" {
		return nil, nil
	}
	top, err := w.read(ctx, "", w.root)
	if err != nil {
		return nil, err
	}
	w.stack = append(w.stack[:0], top)
	return w.down(ctx, path)
}

// down goes from the last folder of the stack to one below it.
func (w *walker) down(ctx context.Context, path string) (*folder, error) {
	for {
		here := w.stack[len(w.stack)-1]
		if here.path == path {
			return here, nil
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(path, here.path), "/")
		name, _, _ := strings.Cut(rest, "/")
		entry := here.entries[name]
		if !entry.Folder() {
			return nil, nil
		}
		next, err := w.read(ctx, join(here.path, name), entry.OID)
		if err != nil {
			return nil, err
		}
		w.stack = append(w.stack, next)
	}
}

func (w *walker) read(ctx context.Context, path string, id gitops.OID) (*folder, error) {
	entries, err := w.objects.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, entries: make(map[string]gitops.Entry, len(entries))}
	for _, e := range entries {
		f.entries[e.Name] = e.Entry
	}
	return f, nil
}

// alikes are the names of a folder that some file system takes for one.
type alikes struct {
	names []string // sorted
	old   *bool    // what allIn found
}

// alike returns the names of a folder that some file system takes for the same as a name. All of them are found in one pass,
// and kept.
func (f *folder) alike(name string) *alikes {
	if f.names == nil {
		f.names = make(map[string]*alikes, len(f.entries))
		for other := range f.entries {
			key := same(other)
			if f.names[key] == nil {
				f.names[key] = &alikes{}
			}
			f.names[key].names = append(f.names[key].names, other)
		}
		for _, a := range f.names {
			slices.Sort(a.names)
		}
	}
	if a := f.names[same(name)]; a != nil {
		return a
	}
	return &alikes{}
}

// allIn reports whether a folder has all of the names. It is always asked about the same folder, which is looked through once. A
// folder that is not there has none.
func (a *alikes) allIn(f *folder) bool {
	if a.old == nil {
		all := f != nil
		for n := 0; n < len(a.names) && all; n++ {
			all = f.entries[a.names[n]].Mode != 0
		}
		a.old = &all
	}
	return *a.old
}
