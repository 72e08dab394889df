package quarantine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

// storeTree stores a tree object in a file of an object folder and returns its name.
func storeTree(dir, format string, entries []gitops.TreeEntry) (gitops.OID, error) {
	content, err := gitops.TreeBytes(entries)
	if err != nil {
		return "", err
	}
	id := gitops.HashObject(format, "tree", content)
	folder := filepath.Join(dir, string(id[:2]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return id, durable.WriteFile(filepath.Join(folder, string(id[2:])), packing.Loose("tree", content), 0o400)
}

// Leave creates a tree without the files that match, and stores its new objects in the quarantine. A folder that
// becomes empty is also left out.
func (q *Store) Leave(ctx context.Context, r *gitops.Repository, tree gitops.OID, out ignore.Patterns) (gitops.OID, error) {
	if len(out) == 0 {
		return tree, nil
	}
	objects := Inspect(ctx, r.With("GIT_NO_LAZY_FETCH=0"))
	defer objects.Close()
	l := &leaving{ctx: ctx, objects: objects, out: out, dir: filepath.Join(q.Dir, "objects"), format: q.Format}
	left, empty, err := l.folder("", tree)
	if err == nil && empty {
		return storeTree(l.dir, l.format, nil)
	}
	return left, err
}

// leaving is the state of one call of Leave.
type leaving struct {
	ctx         context.Context
	objects     *Inspector
	out         ignore.Patterns
	dir, format string
}

func (l *leaving) folder(path string, tree gitops.OID) (left gitops.OID, empty bool, err error) {
	entries, err := l.objects.Tree(l.ctx, tree)
	if err != nil {
		return "", false, err
	}
	var kept []gitops.TreeEntry
	changed := false
	for _, e := range entries {
		if l.out.Match(path+e.Name, e.Folder() || e.Gitlink()) {
			changed = true
			continue
		}
		if e.Folder() {
			id, empty, err := l.folder(path+e.Name+"/", e.OID)
			if err != nil {
				return "", false, err
			}
			changed = changed || empty || id != e.OID
			if empty {
				continue
			}
			e.OID = id
		}
		kept = append(kept, e)
	}
	if !changed {
		return tree, false, nil
	}
	if len(kept) == 0 {
		return "", true, nil
	}
	left, err = storeTree(l.dir, l.format, kept)
	return left, false, err
}

// Overlay adds the files that a snapshot left out to trees that were made from the snapshot.
type Overlay struct {
	objects     *Inspector
	dir, format string
	files       *layer
}

// layer is one folder of an overlay. Each name is a file, a folder, or nothing: then the entry of the tree is removed.
type layer struct {
	entry  gitops.Entry // the entry, if it is a file; then inside does not count
	inside map[string]*layer
}

// Overlay returns the files that one tree has and another one does not have. inspector must be one of the bridge.
func (b *Bridge) Overlay(ctx context.Context, inspector *Inspector, whole, part gitops.OID) (*Overlay, error) {
	changes, err := inspector.Diff(ctx, part, whole, WithoutLimits) // the tree is the user's
	return NewOverlay(inspector, b.dir, b.outer.Format, changes), err
}

// NewOverlay returns the new files of changes. dir is the folder for the trees that the overlay makes.
func NewOverlay(inspector *Inspector, dir, format string, changes []gitops.Change) *Overlay {
	o := &Overlay{objects: inspector, dir: dir, format: format, files: &layer{}}
	for _, c := range changes {
		if c.New.Present() {
			o.files.put(strings.Split(c.Path, "/"), c.New)
		}
	}
	return o
}

func (l *layer) put(path []string, e gitops.Entry) {
	if len(path) == 0 {
		l.entry = e
		return
	}
	if l.inside == nil {
		l.inside = map[string]*layer{}
	}
	if l.inside[path[0]] == nil {
		l.inside[path[0]] = &layer{}
	}
	l.inside[path[0]].put(path[1:], e)
}

// Apply adds the files to a tree. They replace other entries at their paths.
func (o *Overlay) Apply(ctx context.Context, tree gitops.OID) (gitops.OID, error) {
	entries, err := o.entries(ctx, o.files, tree)
	if err != nil {
		return "", err
	}
	return storeTree(o.dir, o.format, entries)
}

// entries returns the entries of a tree with those of a folder. An empty name is the empty tree.
func (o *Overlay) entries(ctx context.Context, over *layer, tree gitops.OID) (entries []gitops.TreeEntry, err error) {
	if tree != "" {
		had, err := o.objects.Tree(ctx, tree)
		if err != nil {
			return nil, err
		}
		entries = slices.Clone(had)
	}
	for name, l := range over.inside {
		i := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return e.Name == name })
		e := gitops.TreeEntry{Name: name, Entry: l.entry}
		if l.inside != nil && !e.Present() {
			below := gitops.OID("")
			if i >= 0 && entries[i].Folder() {
				below = entries[i].OID
			}
			files, err := o.entries(ctx, l, below)
			if err != nil {
				return nil, err
			}
			if len(files) > 0 {
				id, err := storeTree(o.dir, o.format, files)
				if err != nil {
					return nil, err
				}
				e.Entry = gitops.Entry{Mode: gitops.ModeFolder, OID: id}
			}
		}
		switch {
		case i < 0 && e.Present():
			entries = append(entries, e)
		case i >= 0 && e.Present():
			entries[i] = e
		case i >= 0:
			entries = slices.Delete(entries, i, i+1)
		}
	}
	slices.SortFunc(entries, func(a, b gitops.TreeEntry) int { return strings.Compare(a.SortKey(), b.SortKey()) })
	return entries, nil
}
