package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Change is a difference of one file between two states.
type Change struct {
	Path string // as bytes that the agent has chosen
	What What
	Kind files.Kind // the kind in the new state, or in the old one if the file is removed
}

// What is the kind of a change.
type What string

// The kinds of changes. Changed: other content or another type. Mode: another mode. TimeOnly: only another modification time.
const (
	Added    What = "added"
	Removed  What = "removed"
	Changed  What = "changed"
	Mode     What = "mode"
	TimeOnly What = "time"
)

// Scope selects files by their paths: the files with these paths and everything below them, or all files if it is empty.
type Scope []string

// contains reports whether a path is in the scope.
func (s Scope) contains(path string) bool {
	if len(s) == 0 {
		return true
	}
	return slices.ContainsFunc(s, func(p string) bool {
		p = strings.Trim(p, "/")
		return path == p || p == "" || p == "." || strings.HasPrefix(path, p+"/")
	})
}

// State is the state of all files of a workspace, without their contents. The zero value is an empty workspace.
type State struct{ top *node }

// State returns the state of a checkpoint.
func (s *Store) State(c Checkpoint) (State, error) {
	top, err := s.load(c)
	return State{top}, err
}

// Present returns the present state of the workspace that c serves, and stores nothing. The error is an [Unreadable] if files are closed to
// their owner; the state then lacks them. With opens, it opens such files and closes them again, and no process of the agent may run.
func (s *Store) Present(ctx context.Context, c *files.Client, opens bool) (State, error) {
	top, _, err := s.present(ctx, c, Options{Opens: opens, Whole: opens})
	return State{top}, errors.Join(err, shut(c, top))
}

// Compare returns the differences between two states, in the order of a walk.
func Compare(from, to State, scope Scope) []Change {
	if from.top == nil && to.top != nil {
		from.top = &node{kind: files.Folder, mode: to.top.mode, mtime: to.top.mtime}
	}
	return changes("", from.top, to.top, scope, nil)
}

// changes appends to found the differences between two files, or two folders with all their entries, at a path.
func changes(path string, old, recent *node, scope Scope, found []Change) []Change {
	in := scope.contains(path) && path != "" || path == "" && len(scope) == 0
	add := func(what What, n *node) {
		if in && n.kind != files.Special {
			found = append(found, Change{path, what, n.kind})
		}
	}
	switch {
	case old == nil:
		add(Added, recent)
	case recent == nil:
		add(Removed, old)
	case !old.sameContent(recent):
		add(Changed, recent)
	case old.mode != recent.mode:
		add(Mode, recent)
	case old.mtime != recent.mtime:
		add(TimeOnly, recent)
	}
	for _, name := range namesIn(old, recent) {
		found = changes(join(path, name), old.child(name), recent.child(name), scope, found)
	}
	return found
}

// Missing returns the paths of a scope at which neither state has a file.
func (s Scope) Missing(a, b State) (missing []string) {
	for _, p := range s {
		if a.top.at(p) == nil && b.top.at(p) == nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// at returns the file at a path of a scope. It is nil if there is none.
func (n *node) at(path string) *node {
	if path = strings.Trim(path, "/"); path == "" || path == "." {
		return n
	}
	for name := range strings.SplitSeq(path, "/") {
		n = n.child(name)
	}
	return n
}

// namesIn returns the names of the entries of two folders, sorted. Both may be nil.
func namesIn(folders ...*node) (names []string) {
	for _, f := range folders {
		if f == nil {
			continue
		}
		for _, c := range f.children {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
