package hostenv

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Step is one path that the kernel visits when it resolves a path.
type Step struct {
	Path string      // with no link above its last element
	Info fs.FileInfo // nil if it does not exist
}

// Link reports whether the step is a symbolic link.
func (s Step) Link() bool { return s.Info != nil && s.Info.Mode()&fs.ModeSymlink != 0 }

// stepLimit limits the number of elements, since links can refer to each other.
const stepLimit = 1000

// Steps lists the steps of an absolute path in their order: each element of it, and for a link the link and then
// each element of its target. The last step is the file itself. Elements that do not exist are used as written.
func Steps(name string) []Step { return new(Walk).Steps(name) }

// Walk lists the steps of many paths at one time. It reads each file and link once, since most paths of one machine have the same folders.
// It must not be kept, because files change. The zero Walk is ready to use.
type Walk struct{ seen map[string]seen }

// seen is what was at a path.
type seen struct {
	info   fs.FileInfo // nil if there was nothing
	target string      // of a link that could be read
	read   bool
}

// at returns what is at a path with no link above its last element.
func (w *Walk) at(name string) seen {
	s, known := w.seen[name]
	if known {
		return s
	}
	if info, err := os.Lstat(name); err == nil {
		s.info = info
		if info.Mode()&fs.ModeSymlink != 0 {
			s.target, err = os.Readlink(name)
			s.read = err == nil
		}
	}
	if w.seen == nil {
		w.seen = map[string]seen{}
	}
	w.seen[name] = s
	return s
}

// Steps is like the function [Steps].
func (w *Walk) Steps(name string) []Step {
	var steps []Step
	at, todo := "/", elements(name)
	for n := 0; len(todo) > 0 && n < stepLimit; n++ {
		element := todo[0]
		todo = todo[1:]
		if element == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, element)
		here := w.at(next)
		step := Step{next, here.info}
		steps = append(steps, step)
		if !step.Link() {
			at = next
			continue
		}
		if !here.read {
			return steps
		}
		if filepath.IsAbs(here.target) {
			at = "/"
		}
		todo = append(elements(here.target), todo...)
	}
	return steps
}

// elements splits a path. Unlike [filepath.Clean] it keeps "..", whose meaning depends on the links before it.
func elements(name string) []string {
	var all []string
	for e := range strings.SplitSeq(name, "/") {
		if e != "" && e != "." {
			all = append(all, e)
		}
	}
	return all
}

// Tree is a work tree of the repository.
type Tree struct {
	Top  string // without links, as far as it exists
	info fs.FileInfo
}

// NewTree returns the work tree at a folder.
func NewTree(top string) Tree {
	if resolved, err := filepath.EvalSymlinks(top); err == nil {
		top = resolved
	}
	info, _ := os.Stat(top)
	return Tree{filepath.Clean(top), info}
}

// is reports whether a step is the top of the tree, under any name.
func (t Tree) is(s Step) bool {
	return s.Path == t.Top || t.info != nil && s.Info != nil && os.SameFile(s.Info, t.info)
}

// Inside returns the steps that are at or below the top of the tree, by their paths relative to it: "." for the
// top.
func (t Tree) Inside(steps []Step) []Within {
	var found []Within
	tops := map[string]bool{t.Top: true}
	for _, s := range steps {
		if t.is(s) {
			tops[s.Path] = true // a bind mount, or a name in different case
		}
		for top := range tops {
			if rel, ok := relative(top, s.Path); ok {
				found = append(found, Within{rel, s})
				break
			}
		}
	}
	return found
}

// Within is a step below the top of a work tree.
type Within struct {
	Rel string
	Step
}

// relative returns a path relative to a folder at or above it.
func relative(top, name string) (string, bool) {
	switch {
	case name == top:
		return ".", true
	case top == "/":
		return name[1:], true
	}
	return strings.CutPrefix(name, top+"/")
}
