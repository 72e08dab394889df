package policy

import (
	"bytes"
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/filekind"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// userDriver finds files of the tree that the user's configuration executes, and attributes that pass files to one of
// the user's drivers.
type userDriver struct{ programs hostgit.Programs }

// State returns the paths of the tree that the user's side executes or reads settings from, as a text that is equal
// for equal paths. The paths can change without a setting, when a link changes its target.
func (f Facts) State() string { return f.programs().State() }

func (f Facts) programs() hostgit.Programs {
	if f.Programs != nil {
		return f.Programs()
	}
	return hostgit.Read(f.Config, f.Host, f.Top)
}

func (u userDriver) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	for _, why := range u.programs.Reasons(c) {
		r.at(c.Path, "%s", why)
	}
	if pathname.Plain(c.Path) == ".lfsconfig" {
		r.at(c.Path, "git-lfs reads the address of its server from it")
	}
	if !pathname.Means(pathname.Base(c.Path), ".gitattributes") {
		return nil
	}
	if err := encodings(ctx, in, c, r); err != nil || !u.programs.HasDrivers() {
		return err
	}
	return u.attributes(ctx, in, c, r)
}

// reads reports whether git obeys the content of a file.
func (u userDriver) reads(path string) bool {
	entry := gitops.Entry{Mode: gitops.ModeFile}
	return pathname.Means(pathname.Base(path), ".gitattributes") || pathname.Plain(path) == ".lfsconfig" ||
		len(u.programs.Reasons(gitops.Change{Path: path, Old: entry, New: entry})) > 0
}

// attributes checks the new lines of an attribute file, and the removed lines that kept files from a driver.
func (u userDriver) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	w := u.routing(&a)
	w.unread(c.Path, r)
	for _, l := range a.added() {
		names := w.named(l)
		for _, d := range names {
			r.at(c.Path, "line %d applies your driver %s to files", l.Number, d)
		}
		if gives, _ := w.line(l); gives && names == nil {
			r.at(c.Path, "line %d stops excluding files from one of your drivers", l.Number)
		}
	}
	if l, ok := w.released(); ok {
		r.at(c.Path, "line %d, which excludes files from one of your drivers, is removed or loses its effect", l.Number)
	}
	return err
}

// unread reports a file, before or after the commit, of which git does not read all lines. The other checks assume
// that git reads all of them.
func (w *routing) unread(path string, r *report) {
	for _, f := range []struct {
		content []byte
		lines   []attribute.Line
		when    string
	}{{w.content, w.after, ""}, {w.old, w.before, "before, "}} {
		if why := attribute.Misread(f.content); why != "" {
			r.at(path, "%s%s", f.when, why)
			return
		}
		// In a file from the index, git takes the mark for a part of the first line's pattern.
		if len(f.lines) > 0 && f.lines[0].Number == 1 && bytes.HasPrefix(f.content, filekind.ByteOrderMark) {
			if gives, takes := w.line(f.lines[0]); gives || takes {
				r.at(path, "%sgit may not recognise line 1 after the byte order mark", f.when)
				return
			}
		}
	}
}

// released returns a removed line that kept files from a driver, or a line that passes files to a driver and comes
// after removed lines. If several lines apply to a file, the last one counts, and another file may contain the
// opposite of a removed line.
func (w *routing) released() (attribute.Line, bool) {
	left := slices.DeleteFunc(slices.Clone(w.after), func(l attribute.Line) bool {
		gives, takes := w.line(l)
		return !w.there[l.Text()] || !gives && !takes
	})
	for _, l := range w.before {
		if len(left) > 0 && left[0].Text() == l.Text() {
			left = left[1:]
		} else if _, takes := w.line(l); takes {
			return l, true
		}
	}
	for _, l := range left {
		if gives, _ := w.line(l); gives {
			return l, true
		}
	}
	return attribute.Line{}, false
}

// routing describes the effect of attribute lines, and of the macros that they use, on the user's drivers.
type routing struct {
	*attributeChange
	programs              hostgit.Programs
	applies, gives, takes map[attribute.Effect]bool // the uses of macros that have this effect
}

func (u userDriver) routing(a *attributeChange) *routing {
	w := &routing{attributeChange: a, programs: u.programs}
	w.applies = a.macros.Leading(w.appliesDriver)
	w.gives = a.macros.Leading(func(s attribute.Effect) bool { gives, _ := w.about(s); return gives })
	w.takes = a.macros.Leading(func(s attribute.Effect) bool { _, takes := w.about(s); return takes })
	return w
}

// appliesDriver reports whether a state names one of the user's drivers.
func (w *routing) appliesDriver(s attribute.Effect) bool {
	name, value := s.Attribute()
	return !s.Reversed && w.programs.Drives(name, value)
}

// about reports whether a state by itself passes files to one of the user's drivers, and whether it takes files away
// from one.
func (w *routing) about(s attribute.Effect) (gives, takes bool) {
	name, value := s.Attribute()
	if !w.programs.DrivesBy(name) {
		return false, false
	}
	applies := w.programs.Drives(name, value) != s.Reversed
	return applies, !applies
}

// line reports whether a line passes files to one of the user's drivers, and whether it takes files away from one. A macro that the line negates
// or redefines has the reverse effect: if it kept files from a driver, the driver now gets them.
func (w *routing) line(l attribute.Line) (gives, takes bool) {
	say := func(s attribute.Effect) {
		g, t := w.about(s)
		gives, takes = gives || g || w.gives[s.Use()], takes || t || w.takes[s.Use()]
	}
	for _, state := range l.States {
		say(attribute.Effect{State: state})
	}
	if w.redefines(l) {
		say(attribute.Effect{State: l.Macro, Reversed: true})
	}
	return gives, takes
}

// named returns the user's drivers that a line names, each with its kind.
func (w *routing) named(l attribute.Line) (names []string) {
	macro := false
	for _, state := range l.States {
		s := attribute.Effect{State: state}
		if name, value := s.Attribute(); w.appliesDriver(s) {
			names = append(names, name+"."+value)
		}
		macro = macro || w.applies[s.Use()]
	}
	if names == nil && macro {
		return []string{"(named by a macro)"}
	}
	return names
}

// encodingAttribute makes git convert a file with iconv(3), which loads a module of the C library with the given
// name.
const encodingAttribute = "working-tree-encoding"

// encodings reports attributes with an uncommon charset, or with a value at which git ends.
func encodings(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	for _, l := range a.added() {
		for _, state := range l.States { // the definition of a macro with that state is also a line
			name, value := attribute.Effect{State: state}.Attribute()
			switch {
			case name != encodingAttribute:
			case state == name:
				r.at(c.Path, "line %d makes git end with an error: %s needs a charset", l.Number, name)
			case value != "" && !filekind.CommonCharset(value):
				r.at(c.Path, "line %d makes git load a converter for the charset %q", l.Number, value)
			}
		}
	}
	return err
}
