package pathname

import (
	"cmp"
	"strings"
	"sync"
)

// Table lists well-known files by name. The folder above does not matter, because a project can be in any folder
// of a repository. Names are in the form of [Plain].
type Table struct {
	names   map[string]string // reason, by the name of a file
	endings map[string]string // by the extension of a file
	folders map[string]string // by the name of a folder, for everything in it; of one or two components
	above   map[string]string // by the name of a folder with such files in it
}

// Find returns the reason for a path, or empty. A link counts as a folder of its name with everything in it.
func (t Table) Find(path string, link bool) string {
	var parts []string
	Components(path, func(_, name string) bool {
		parts = append(parts, Plain(name))
		return true
	})
	name := parts[len(parts)-1]
	if why := t.names[name]; why != "" {
		return why
	}
	if why := cmp.Or(t.folders[name], t.above[name]); link && why != "" {
		return why
	}
	for n := range parts[:len(parts)-1] {
		if why := t.folders[parts[n]]; why != "" {
			return why
		}
		if why := t.folders[parts[n]+"/"+parts[n+1]]; why != "" {
			return why
		}
	}
	if len(parts) > 1 {
		last := parts[len(parts)-2] + "/" + name
		if why := t.names[last]; why != "" {
			return why
		}
		if why := t.folders[last]; link && why != "" {
			return why
		}
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return t.endings[name[dot:]]
	}
	return ""
}

// Group lists names with the same reason.
type Group struct {
	why   string
	paths string
}

// Named returns a group of paths, which are separated by spaces.
func Named(why, paths string) Group { return Group{why, paths} }

// NewTable returns a function that makes a table of groups when it is first called, since most commands need none. A path
// that ends in "/" is a folder, and one that starts with "*" is an extension.
func NewTable(groups ...Group) func() Table {
	return sync.OnceValue(func() Table {
		t := Table{names: map[string]string{}, endings: map[string]string{}, folders: map[string]string{}, above: map[string]string{}}
		for _, g := range groups {
			for p := range strings.FieldsSeq(g.paths) {
				t.add(p, g.why)
			}
		}
		return t
	})
}

func (t Table) add(path, why string) {
	if first, rest, _ := strings.Cut(path, "/"); rest != "" {
		t.above[first] = why
	}
	if folder, ok := strings.CutSuffix(path, "/"); ok {
		t.folders[folder] = why
	} else if ending, ok := strings.CutPrefix(path, "*"); ok {
		t.endings[ending] = why
	} else {
		t.names[path] = why
	}
}
