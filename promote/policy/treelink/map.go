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
	// stepBytes is the number of bytes of a name whose lookup takes as long as a step.
	stepBytes = 64
)

// Map holds the links of a tree.
type Map struct {
	Paths []string          // of all links, in git's order
	own   map[string]string // targets by path
	root  *place
	names *names // nil until it is needed

	unusable map[string]string // by path, why no system can create the link
}

// place is a link or a folder with links, and all others whose path is the same to some file systems.
type place struct {
	below   map[string]*place // by name in the form of [pathname.Same]
	target  string            // of the newest link
	link    bool
	several bool // there are links with different targets
}

func (m *Map) add(path string, link named) {
	if link.unusable != "" {
		m.unusable[path] = link.unusable
	}
	m.Paths = append(m.Paths, path)
	m.own[path] = link.target
	p := m.root
	for name := range strings.SplitSeq(path, "/") {
		p = p.add(pathname.Same(name))
	}
	p.several = p.several || p.link && p.target != link.target
	p.link, p.target = true, link.target
}

// add returns the place of a name below another place, and makes it if there is none.
func (p *place) add(name string) *place {
	if p.below == nil {
		p.below = map[string]*place{}
	}
	if p.below[name] == nil {
		p.below[name] = &place{}
	}
	return p.below[name]
}

// at returns the place of a name below another place, or nil if no link is there. There may be no other place.
func (p *place) at(name string) *place {
	if p == nil {
		return nil
	}
	return p.below[pathname.Same(name)]
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
	if absolute(target) {
		return w.forbidden("is absolute")
	}
	at := splitPath(pathname.Folder(path))
	places := []*place{m.root} // of the first n parts of at, for each n
	for _, name := range at {
		places = append(places, places[len(places)-1].at(name))
	}
	todo := splitPath(target)
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
			at, places = at[:len(at)-1], places[:len(at)]
			continue
		case pathname.IsGit(name):
			return w.forbidden("leads into .git")
		case len(at) == 0 && workspace != "" && pathname.Plain(name) == pathname.Plain(workspace):
			return w.forbidden("leads into the workspace")
		}
		*left -= len(name) / stepBytes
		folder := places[len(places)-1]
		here := folder.at(name)
		if here == nil || !here.link {
			at, places = append(at, name), append(places, here)
			continue
		}
		link := pathname.Join(strings.Join(at, "/"), name)
		if here.several {
			w = w.forbidden("leads through names that are one where case does not count")
		}
		if w.links = append(w.links, link); len(w.links) > hopLimit {
			return w // no system follows so many links
		}
		next, exact := m.own[link]
		if !exact { // some file systems take a link whose name is the same to them
			next = here.target
		}
		if absolute(next) {
			return w.forbidden("leads through an absolute link")
		}
		*left -= strings.Count(next, "/")
		todo = append(splitPath(next), todo...)
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
