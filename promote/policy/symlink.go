package policy

import (
	"bytes"
	"context"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

const (
	// targetLimit is longer than the target of a link can be on any system.
	targetLimit = 4096
	// hopLimit is more links than any system follows for one path.
	hopLimit = 64
	// stepBudget bounds the work for the links of one commit.
	stepBudget = 5_000_000
	// stepBytes is the number of bytes of a path whose lookup takes as long as a step.
	stepBytes = 64
	// knownEntries bounds the number of cached links, folders and trees.
	knownEntries = 200_000
)

// symlinkEscape finds links that lead out of the repository, into .git or into the workspace when they are followed
// through the other links of the tree. One link can change where another one leads, so that a commit which touches a
// link makes the rule check all links.
type symlinkEscape struct {
	workspace string
	known     map[gitops.OID]*linkTree
	held      int // entries counted by knownEntries
}

// linkTree lists the links of a tree object.
type linkTree struct {
	links   []gitops.TreeEntry
	folders []gitops.TreeEntry // folders with links somewhere below
}

func (s *symlinkEscape) commit(ctx context.Context, in *inspection, r *report) error {
	changed := map[string]bool{}
	for _, c := range in.Changes {
		if c.New.Mode == gitops.ModeLink || c.Old.Mode == gitops.ModeLink {
			changed[c.Path] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if s.held > knownEntries {
		clear(s.known)
		s.held = 0
	}
	now, err := s.links(ctx, in, in.Tree)
	if err != nil {
		return err
	}
	before, err := s.links(ctx, in, in.ParentTree)
	if err != nil {
		return err
	}
	for _, path := range now.paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := now.left + before.left
		why := now.escapes(path)
		if why == "" || !changed[path] && before.own[path] != "" && before.escapes(path) != "" {
			why = ""
		}
		if err := in.meter.spend(int64(left-now.left-before.left) * stepCost); err != nil {
			return err
		}
		if why == "" {
			continue
		}
		r.at(path, "the link %s", why)
	}
	if now.left < 0 || before.left < 0 {
		r.at("", "there are too many links to be followed")
	}
	return nil
}

// linkMap holds the links of a tree.
type linkMap struct {
	workspace string
	paths     []string
	own       map[string]string // targets by path
	targets   map[string]string // targets by the path in the form of [pathname.Same]
	several   map[string]bool   // paths in that form with several different targets
	left      int               // the rest of stepBudget
}

// links collects the links of a tree.
func (s *symlinkEscape) links(ctx context.Context, in *inspection, tree gitops.OID) (*linkMap, error) {
	m := &linkMap{workspace: s.workspace, own: map[string]string{}, targets: map[string]string{}, several: map[string]bool{}, left: stepBudget}
	if tree == "" {
		return m, nil
	}
	if _, err := s.survey(ctx, in.objects, tree); err != nil {
		return nil, err
	}
	return m, s.collect(ctx, in.objects, m, "", tree)
}

// survey finds the folders of a tree that have links. It caches the trees, so that the next commit costs only its
// changes.
func (s *symlinkEscape) survey(ctx context.Context, objects Objects, tree gitops.OID) (*linkTree, error) {
	if t, ok := s.known[tree]; ok {
		return t, nil
	}
	entries, err := objects.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	t := &linkTree{}
	for _, e := range entries {
		switch {
		case e.Mode == gitops.ModeLink:
			t.links = append(t.links, alone(e))
		case e.Folder():
			below, err := s.survey(ctx, objects, e.OID)
			if err != nil {
				return nil, err
			}
			if len(below.links)+len(below.folders) > 0 {
				t.folders = append(t.folders, alone(e))
			}
		}
	}
	s.known[tree] = t
	s.held += 1 + len(t.links) + len(t.folders)
	return t, nil
}

// alone returns a copy of an entry that does not keep the text of its whole tree in memory.
func alone(e gitops.TreeEntry) gitops.TreeEntry {
	return gitops.TreeEntry{Name: strings.Clone(e.Name), Entry: gitops.Entry{Mode: e.Mode, OID: gitops.OID(strings.Clone(string(e.OID)))}}
}

func (s *symlinkEscape) collect(ctx context.Context, objects Objects, m *linkMap, dir string, tree gitops.OID) error {
	t := s.known[tree]
	for _, l := range t.links {
		target, _, err := objects.Blob(ctx, l.OID, targetLimit)
		if err != nil {
			return err
		}
		path := pathname.Join(dir, l.Name)
		target, _, _ = bytes.Cut(target, []byte{0}) // symlink(2) ends it at a NUL
		m.paths = append(m.paths, path)
		m.own[path] = string(target)
		if other, there := m.targets[pathname.Same(path)]; there && other != string(target) {
			m.several[pathname.Same(path)] = true
		}
		m.targets[pathname.Same(path)] = string(target)
	}
	for _, f := range t.folders {
		if err := s.collect(ctx, objects, m, pathname.Join(dir, f.Name), f.OID); err != nil {
			return err
		}
	}
	return nil
}

// escapes returns the forbidden place to which a link leads, or empty.
func (m *linkMap) escapes(path string) string {
	target := m.own[path]
	if why := m.follow(path, target); why != "" || !strings.Contains(target, `\`) {
		return why
	}
	return m.follow(path, strings.ReplaceAll(target, `\`, "/")) // as Windows reads it
}

// follow follows a link as the kernel does. A path that the tree does not contain is treated as a plain folder,
// because the user may have one there.
func (m *linkMap) follow(path, target string) string {
	at := splitPath(pathname.Folder(path))
	if absolute(target) {
		return "is absolute"
	}
	todo, length := splitPath(target), len(pathname.Folder(path))
	for hops := 0; len(todo) > 0; {
		if m.left--; m.left < 0 {
			return ""
		}
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			if len(at) == 0 {
				return "leads out of the repository"
			}
			length -= len(at[len(at)-1]) + 1
			at = at[:len(at)-1]
			continue
		case pathname.IsGit(name):
			return "leads into .git"
		case len(at) == 0 && m.workspace != "" && pathname.Plain(name) == pathname.Plain(m.workspace):
			return "leads into the workspace"
		}
		at, length = append(at, name), length+len(name)+1
		if length > 2*targetLimit { // no link can have such a path
			continue
		}
		m.left -= length / stepBytes
		key := pathname.Same(strings.Join(at, "/"))
		next, link := m.targets[key]
		if !link {
			continue
		}
		if m.several[key] {
			return "leads through names that are one where case does not count"
		}
		if hops++; hops > hopLimit {
			return "" // no system follows so many links
		}
		if absolute(next) {
			return "leads through an absolute link"
		}
		m.left -= strings.Count(next, "/")
		length -= len(name) + 1
		at, todo = at[:len(at)-1], append(splitPath(next), todo...)
	}
	return ""
}

// absolute reports whether a target is absolute on some system.
func absolute(target string) bool {
	if strings.HasPrefix(target, "/") || strings.HasPrefix(target, `\`) {
		return true
	}
	return len(target) > 1 && 'a' <= target[0]|0x20 && target[0]|0x20 <= 'z' && target[1] == ':'
}

func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
