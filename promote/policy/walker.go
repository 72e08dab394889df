package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// walker reads the folders of a tree for paths in git's order. Each folder is read once, and only the folders above
// the current path are kept.
type walker struct {
	objects Objects
	root    gitops.OID
	stack   []*folder
}

// folder is one folder of a tree.
type folder struct {
	path    string
	entries map[string]gitops.Entry
	names   map[string]*alikes // by the form of [pathname.Same]
}

// at returns the folder at a path, or nil if there is none. An empty path is the top. A request for a folder above
// the current one keeps the current one.
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

// down goes from the last folder of the stack to a folder below it.
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
		next, err := w.read(ctx, pathname.Join(here.path, name), entry.OID)
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

// alikes are names of a folder that some file system treats as the same name.
type alikes struct {
	names []string // sorted
	old   *bool    // the result of allIn
}

// alike returns the names of a folder that some file system treats as the same name. The first call groups all names
// of the folder, and keeps the groups.
func (f *folder) alike(name string) *alikes {
	if f.names == nil {
		f.names = make(map[string]*alikes, len(f.entries))
		for other := range f.entries {
			key := pathname.Same(other)
			if f.names[key] == nil {
				f.names[key] = &alikes{}
			}
			f.names[key].names = append(f.names[key].names, other)
		}
		for _, a := range f.names {
			slices.Sort(a.names)
		}
	}
	if a := f.names[pathname.Same(name)]; a != nil {
		return a
	}
	return &alikes{}
}

// allIn reports whether a folder has all of the names. A missing folder has none. All calls must pass the same
// folder, because the result is cached.
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
