package treelink

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

const (
	// NameLimit bounds the names of one path.
	NameLimit = 2000
	// nameSteps bounds the steps along the links of a tree to find names.
	nameSteps = StepBudget / 4
)

// names are the ways of all links, by the place where they lead. Places are in the form of [pathname.Same].
type names struct {
	leading map[string][]string // links that lead to a place
	through map[string][]string // links that lead through another link
	whole   bool                // all links were followed
}

// Read follows all links for [Map.Names], and returns the number of steps. Later calls take none.
func (m *Map) Read() (steps int) {
	if m.names != nil {
		return 0
	}
	n := &names{leading: map[string][]string{}, through: map[string][]string{}}
	left := nameSteps
	for _, path := range m.Paths {
		w := m.follow(path, m.own[path], "", &left)
		if w.ended {
			n.leading[pathname.Same(w.end)] = append(n.leading[pathname.Same(w.end)], path)
		}
		for _, l := range w.links {
			n.through[pathname.Same(l)] = append(n.through[pathname.Same(l)], path)
		}
	}
	n.whole = left >= 0
	m.names = n
	return nameSteps - left
}

// name is a name of a path.
type name struct {
	path    string
	plain   string   // the first part of it, which no link changes: the path itself, or the first link
	entered []string // the places to which its links lead
}

// Names returns the other names of a path: those by which open(2) finds it through the links of the tree. For a path that
// is a link, each link that leads through it is a name, too. Short ways come first. No two links of a name lead to the
// same place, so that a link to a folder above itself does not add endless names. whole is false if there may be more
// names. [Map.Read] must have been called.
func (m *Map) Names(path string) (all []string, whole bool) {
	if len(m.Paths) == 0 {
		return nil, true
	}
	seen := map[string]bool{path: true}
	todo := []name{{path, path, nil}}
	found := func(n name) bool {
		if !seen[n.path] && len(n.path) < targetLimit { // a longer path cannot be opened
			seen[n.path] = true
			todo = append(todo, n)
		}
		return len(todo) <= NameLimit
	}
	for _, link := range m.names.through[pathname.Same(path)] {
		found(name{link, link, nil})
	}
	whole = m.names.whole
	for n := 0; n < len(todo) && whole; n++ {
		whole = m.longer(todo[n], found)
	}
	for _, n := range todo[1:] {
		all = append(all, n.path)
	}
	return all, whole
}

// longer gives found the names that have one more link than a name, until found returns false.
func (m *Map) longer(n name, found func(name) bool) bool {
	place, key := n.plain, pathname.Same(n.plain)
	for {
		rest := strings.TrimPrefix(n.path[len(place):], "/")
		if !slices.Contains(n.entered, key) {
			for _, link := range m.names.leading[key] {
				if !found(name{strings.TrimSuffix(link+"/"+rest, "/"), link, append(slices.Clone(n.entered), key)}) {
					return false
				}
			}
		}
		if place == "" {
			return true
		}
		place, key = pathname.Folder(place), pathname.Folder(key)
	}
}
