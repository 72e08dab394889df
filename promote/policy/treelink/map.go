package treelink

import (
	"cmp"
	"strings"

	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

const (
	// targetLimit is longer than the target of a link can be on any system: PATH_MAX of Linux, which counts a NUL at the end.
	targetLimit = 4096
	// hopLimit is more links than any system follows for one path.
	hopLimit = 64
	// StepBudget bounds the steps along the links of one tree.
	StepBudget = 5_000_000
	// stepBytes is the number of bytes of a path whose lookup takes as long as a step.
	stepBytes = 64
)

// Map holds the links of a tree.
type Map struct {
	Paths   []string          // of all links, in git's order
	own     map[string]string // targets by path
	targets map[string]string // targets by the path in the form of [pathname.Same]
	several map[string]bool   // paths in that form with several different targets
	names   *names            // nil until it is needed

	unusable map[string]string // by path, why no system can create the link
}

func (m *Map) add(path string, link named) {
	key, target := pathname.Same(path), link.target
	if link.unusable != "" {
		m.unusable[path] = link.unusable
	}
	m.Paths = append(m.Paths, path)
	m.own[path] = target
	if other, there := m.targets[key]; there && other != target {
		m.several[key] = true
	}
	m.targets[key] = target
}

// Has reports whether a path is a link.
func (m *Map) Has(path string) bool { _, is := m.own[path]; return is }

// Escapes returns the forbidden place to which a link leads, or why it cannot be created, or empty. It takes its steps from left, and
// returns no place if none are left. workspace is the folder of the agent's workspace, and may be empty.
func (m *Map) Escapes(path, workspace string, left *int) string {
	target := m.own[path]
	why := m.follow(path, target, workspace, left).why
	if why == "" && strings.Contains(target, `\`) {
		why = m.follow(path, strings.ReplaceAll(target, `\`, "/"), workspace, left).why // as Windows reads it
	}
	return cmp.Or(why, m.unusable[path])
}

// at returns the target of a link. Without a link of exactly that name, it takes one whose name is the same to some file systems.
func (m *Map) at(path string) (target string, link bool) {
	if target, link = m.own[path]; !link {
		target, link = m.targets[pathname.Same(path)]
	}
	return target, link
}

// way is where a link leads.
type way struct {
	why   string   // the forbidden place, or empty
	ended bool     // it leads to a place in the tree
	end   string   // that place
	links []string // the links on the way
}

// forbidden sets the first forbidden place.
func (w way) forbidden(why string) way {
	if w.why == "" {
		w.why = why
	}
	return w
}

// follow follows a link as the kernel does. A path that the tree does not contain is treated as a plain folder,
// because the user may have one there.
func (m *Map) follow(path, target, workspace string, left *int) (w way) {
	at := splitPath(pathname.Folder(path))
	if absolute(target) {
		return w.forbidden("is absolute")
	}
	todo, length := splitPath(target), len(pathname.Folder(path))
	for len(todo) > 0 {
		if *left--; *left < 0 {
			return w
		}
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			if len(at) == 0 {
				return w.forbidden("leads out of the repository")
			}
			length -= len(at[len(at)-1]) + 1
			at = at[:len(at)-1]
			continue
		case pathname.IsGit(name):
			return w.forbidden("leads into .git")
		case len(at) == 0 && workspace != "" && pathname.Plain(name) == pathname.Plain(workspace):
			return w.forbidden("leads into the workspace")
		}
		at, length = append(at, name), length+len(name)+1
		if length > 2*targetLimit { // no link can have such a path
			continue
		}
		*left -= length / stepBytes
		here := strings.Join(at, "/")
		next, link := m.at(here)
		if !link {
			continue
		}
		if m.several[pathname.Same(here)] {
			w = w.forbidden("leads through names that are one where case does not count")
		}
		if w.links = append(w.links, here); len(w.links) > hopLimit {
			return w // no system follows so many links
		}
		if absolute(next) {
			return w.forbidden("leads through an absolute link")
		}
		*left -= strings.Count(next, "/")
		length -= len(name) + 1
		at, todo = at[:len(at)-1], append(splitPath(next), todo...)
	}
	w.ended, w.end = true, strings.Join(at, "/")
	return w
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
