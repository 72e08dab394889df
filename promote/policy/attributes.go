package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
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
