package policy

import (
	"cmp"
	"strings"
)

// pathTable tells of well-known files by their names, whatever the folder above: projects lie in folders of
// repositories. Names are as [plain] makes them.
type pathTable struct {
	names   map[string]string // of a file, and what to say of it
	endings map[string]string // of a file's name, from its last dot
	folders map[string]string // of a folder, in all of which it is so; of one or two components
	above   map[string]string // of a folder in which there is one of those
}

// find says what is known of a path; empty for nothing. A link stands for all that a folder of its name would hold.
func (t pathTable) find(path string, link bool) string {
	var parts []string
	components(path, func(_, name string) bool {
		parts = append(parts, plain(name))
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

// group collects names that share a reason.
type group struct {
	why   string
	paths []string
}

// newPathTable makes a table of groups. A path that ends in "/" is a folder, one that starts with "*" an ending.
func newPathTable(groups ...group) pathTable {
	t := pathTable{names: map[string]string{}, endings: map[string]string{}, folders: map[string]string{}, above: map[string]string{}}
	for _, g := range groups {
		for _, p := range g.paths {
			if first, rest, _ := strings.Cut(p, "/"); rest != "" {
				t.above[first] = g.why
			}
			if folder, ok := strings.CutSuffix(p, "/"); ok {
				t.folders[folder] = g.why
			} else if ending, ok := strings.CutPrefix(p, "*"); ok {
				t.endings[ending] = g.why
			} else {
				t.names[p] = g.why
			}
		}
	}
	return t
}
