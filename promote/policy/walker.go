package policy

import (
	"context"
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
	names   map[string][]string // by what is the same to some file system
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

// alike lists the names of a folder that some file system takes for the same as a name.
func (f *folder) alike(name string) []string {
	if f.names == nil {
		f.names = make(map[string][]string, len(f.entries))
		for other := range f.entries {
			key := same(other)
			f.names[key] = append(f.names[key], other)
		}
	}
	return f.names[same(name)]
}
