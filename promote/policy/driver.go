package policy

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// userDriver looks for files of the tree that the user's own configuration executes, and for attributes that hand
// files to a driver of the user's.
type userDriver struct {
	changesOnly
	programs programs
}

// State returns which paths of the tree the user's side executes or reads settings from: equal for equal ones. What it is can
// change without a setting, by a link that leads elsewhere.
func (f Facts) State() string { return fmt.Sprint(newUserDriver(f).programs.files) }

func newUserDriver(f Facts) userDriver {
	u := userDriver{programs: readPrograms(f.Config, f.Top)}
	u.programs.host(f.Host, f.Top)
	return u
}

func (userDriver) describe() Description {
	return documented("user-driver", Hold, "a file that your git configuration executes or includes, or an attribute that hands files to one of your drivers")
}

func (u userDriver) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	for _, p := range u.programs.files {
		if p.concerns(c.Path) {
			r.at(c.Path, "%s names it", p.key)
			break
		}
	}
	for _, d := range u.programs.doubts {
		switch {
		case !d.concerns(c):
			continue
		case d.blind:
			r.at(c.Path, "landing it may run %s, of which cannot be told what it executes", d.key)
		default:
			r.at(c.Path, "%s may run it", d.key)
		}
		break
	}
	if plain(c.Path) == ".lfsconfig" {
		r.at(c.Path, "git-lfs is told by it where to fetch from and send to")
	}
	if !means(base(c.Path), ".gitattributes") {
		return nil
	}
	if err := encodings(ctx, in, c, r); err != nil || len(u.programs.drivers) == 0 {
		return err
	}
	return u.attributes(ctx, in, c, r)
}

// attributes looks at the lines that a file of attributes did not have before, and at those that kept files from a driver.
func (u userDriver) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	w := u.routing(&a)
	w.unread(c.Path, r)
	for _, l := range a.added() {
		names := w.named(l)
		for _, d := range names {
			r.at(c.Path, "line %d hands files to your driver %s", l.number, d)
		}
		if gives, _ := w.line(l); gives && names == nil {
			r.at(c.Path, "line %d undoes what keeps files from a driver of yours", l.number)
		}
	}
	if l, ok := w.released(); ok {
		r.at(c.Path, "it no longer keeps files from a driver of yours as line %d did", l.number)
	}
	return err
}

// unread reports a file in which git does not see all lines, or did not: the rest of the rule takes them for said.
func (w *routing) unread(path string, r *report) {
	for _, f := range []struct {
		content []byte
		lines   []attributeLine
		when    string
	}{{w.content, w.after, ""}, {w.old, w.before, "before, "}} {
		if why := misread(f.content); why != "" {
			r.at(path, "%s%s", f.when, why)
			return
		}
		// In the index, git takes the mark for a part of the first line's pattern.
		if len(f.lines) > 0 && f.lines[0].number == 1 && bytes.HasPrefix(f.content, byteOrderMark) {
			if gives, takes := w.line(f.lines[0]); gives || takes {
				r.at(path, "%sgit may not know line 1 behind the byte order mark", f.when)
				return
			}
		}
	}
}

// released finds the line that keeps files from a driver and is gone, or the one that hands them to it and came before. Of what
// several lines say the last counts, and another file may say what this one spoke against.
func (w *routing) released() (attributeLine, bool) {
	left := slices.DeleteFunc(slices.Clone(w.after), func(l attributeLine) bool {
		gives, takes := w.line(l)
		return !w.there[l.text()] || !gives && !takes
	})
	for _, l := range w.before {
		if len(left) > 0 && left[0].text() == l.text() {
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
	return attributeLine{}, false
}

// routing is what lines of attributes, and the macros that they use, say about the user's drivers.
type routing struct {
	*attributeChange
	programs            programs
	hands, gives, takes map[saying]bool // the uses of macros that lead to it
}

func (u userDriver) routing(a *attributeChange) *routing {
	w := &routing{attributeChange: a, programs: u.programs}
	w.hands = a.macros.leading(w.handsOver)
	w.gives = a.macros.leading(func(s saying) bool { gives, _ := w.about(s); return gives })
	w.takes = a.macros.leading(func(s saying) bool { _, takes := w.about(s); return takes })
	return w
}

// handsOver reports whether a state names one of the user's drivers.
func (w *routing) handsOver(s saying) bool {
	name, value := s.attribute()
	return !s.back && w.programs.drivers[name+"."+value]
}

// about reports whether a state by itself hands files to one of the user's drivers, and whether it takes them from one.
func (w *routing) about(s saying) (gives, takes bool) {
	name, value := s.attribute()
	if !w.programs.kinds[name] {
		return false, false
	}
	hands := w.programs.drivers[name+"."+value] != s.back
	return hands, !hands
}

// line reports the same of a line. A macro that is negated, or defined anew, takes back what it said: that hands over what it
// kept.
func (w *routing) line(l attributeLine) (gives, takes bool) {
	say := func(s saying) {
		g, t := w.about(s)
		gives, takes = gives || g || w.gives[s.use()], takes || t || w.takes[s.use()]
	}
	for _, state := range l.states {
		say(saying{state, false})
	}
	if w.redefines(l) {
		say(saying{l.macro, true})
	}
	return gives, takes
}

// named returns how a line names drivers of the user's, each with its kind; empty if it does not.
func (w *routing) named(l attributeLine) (names []string) {
	macro := false
	for _, state := range l.states {
		s := saying{state, false}
		if name, value := s.attribute(); w.handsOver(s) {
			names = append(names, name+"."+value)
		}
		macro = macro || w.hands[s.use()]
	}
	if names == nil && macro {
		return []string{"that a macro names"}
	}
	return names
}
