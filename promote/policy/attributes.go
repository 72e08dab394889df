package policy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// attributeChange is an attribute file before and after the commit.
type attributeChange struct {
	old, content  []byte
	before, after []attribute.Line
	macros        attribute.Macros // the macros that the file may use
	there         map[string]bool  // the texts of the previous lines
	defined       map[string]int   // the number of previous definitions of each macro
}

// attributeLines reads a change of an attribute file. If the file is too long to be read, it reports that and returns
// no lines.
func (in *inspection) attributeLines(ctx context.Context, c gitops.Change, r *report) (a attributeChange, err error) {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return a, err
	}
	top := !strings.Contains(c.Path, "/")
	a = attributeChange{old: old, content: content, before: attribute.Parse(old, top), after: attribute.Parse(content, top), there: map[string]bool{}, defined: map[string]int{}}
	for _, l := range a.before {
		a.there[l.Text()] = true
		a.defined[l.Macro]++
	}
	a.macros, err = in.macros(ctx)
	return a, err
}

// added returns the lines whose text is new in the file.
func (a *attributeChange) added() []attribute.Line {
	return slices.DeleteFunc(slices.Clone(a.after), func(l attribute.Line) bool { return a.there[l.Text()] })
}

// setting returns a function that reports whether a line sets an attribute to a value, itself or through macros. state is the attribute with
// the value.
func (a *attributeChange) setting(state string) func(attribute.Line) bool {
	sets := func(s attribute.Effect) bool { return !s.Reversed && s.State == state }
	through := a.macros.Leading(sets)
	return func(l attribute.Line) bool {
		return slices.ContainsFunc(l.States, func(state string) bool {
			s := attribute.Effect{State: state}
			return sets(s) || through[s.Use()]
		})
	}
}

// redefines reports whether a line defines a macro that git or another previous line also defines. Only the last
// definition counts.
func (a *attributeChange) redefines(l attribute.Line) bool {
	others := a.defined[l.Macro]
	if a.there[l.Text()] {
		others--
	}
	return l.Macro == "binary" || l.Macro != "" && others > 0
}

// macros returns git's own macros, the user's, and those of the top of the tree, before and after the commit. Only the
// top can define macros.
func (in *inspection) macros(ctx context.Context) (attribute.Macros, error) {
	all := attribute.Macros{}
	for _, l := range in.userLines() {
		if l.Macro != "" {
			all[l.Macro] = append(all[l.Macro], l.States...)
		}
	}
	for _, w := range []*walker{in.parent, in.tree} {
		top, err := w.at(ctx, "")
		if err != nil || top == nil {
			return all, err
		}
		content, err := in.content(ctx, top.entries[".gitattributes"])
		if err != nil {
			return nil, err
		}
		for name, states := range attribute.MacrosOf(attribute.Parse(content, true)) {
			all[name] = append(all[name], states...)
		}
	}
	return all, nil
}

// hidingMacros are macros by which attribute lines can make git show no diff.
type hidingMacros struct {
	last    attribute.Macros          // the macros by their last definitions, which count
	through map[attribute.Effect]bool // the uses of macros that lead to -diff, by any definition
	states  int64                     // the number of states of all macros
}

func hidesDiff(s attribute.Effect) bool { return !s.Reversed && s.State == "-diff" }

// hidingMacros reads the macros of a tree, and the user's.
func (in *inspection) hidingMacros(ctx context.Context, w *walker) (hidingMacros, error) {
	placed, _, err := in.linesFor(ctx, w, ".gitattributes", true)
	lines, all := []attribute.Line{attribute.Binary}, attribute.Macros{}
	for _, l := range placed {
		lines = append(lines, l.Line)
	}
	m := hidingMacros{last: attribute.MacrosOf(lines)}
	for _, l := range lines {
		if l.Macro != "" {
			all[l.Macro] = append(all[l.Macro], l.States...)
			m.states += int64(len(l.States))
		}
	}
	m.through = all.Leading(hidesDiff)
	return m, err
}

func (m hidingMacros) same(as hidingMacros) bool {
	return maps.Equal(m.through, as.through) && maps.EqualFunc(m.last, as.last, slices.Equal)
}

// mayHide reports whether a line makes git show no diff of texts, at least if lines of higher precedence set other attributes.
func (m hidingMacros) mayHide(l attribute.Line) bool {
	return l.Pattern != "" && !filekind.BinaryName(l.Pattern) && slices.ContainsFunc(l.States, func(state string) bool {
		s := attribute.Effect{State: state}
		return hidesDiff(s) || m.through[s.Use()]
	})
}

// hides reports whether a line alone makes git show no diff.
func (m hidingMacros) hides(l attribute.Line) bool { return m.last.Set(l)["diff"] == "unset" }

// keptLines returns the lines of an attribute file whose text the file had before the commit.
func (in *inspection) keptLines(ctx context.Context, path string) ([]attribute.Line, error) {
	var found [2][]attribute.Line
	for n, w := range []*walker{in.parent, in.tree} {
		here, err := w.at(ctx, pathname.Folder(path))
		if err != nil || here == nil {
			return nil, err
		}
		f, err := in.attributeFile(ctx, here.entries[pathname.Base(path)], !strings.Contains(path, "/"))
		if err != nil {
			return nil, err
		}
		found[n] = f.lines
	}
	had := map[string]bool{}
	for _, l := range found[0] {
		had[l.Text()] = true
	}
	return slices.DeleteFunc(slices.Clone(found[1]), func(l attribute.Line) bool { return !had[l.Text()] }), nil
}
