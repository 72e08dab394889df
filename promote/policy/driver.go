package policy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// userDriver looks for files of the tree that the user's own configuration executes, and for attributes that hand
// files to a driver of the user's.
type userDriver struct {
	changesOnly
	programs programs
}

func newUserDriver(f Facts) userDriver { return userDriver{programs: readPrograms(f.Config, f.Top)} }

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
	if len(u.programs.drivers) > 0 && means(base(c.Path), ".gitattributes") {
		return u.attributes(ctx, in, c, r)
	}
	return nil
}

// attributes looks at the lines that a file of attributes did not have before, and at those that kept files from a driver.
func (u userDriver) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	u.unread(&a, c.Path, r)
	for _, l := range a.added() {
		named := false
		for _, d := range l.drivers(a.macros) {
			if u.programs.drivers[d] {
				r.at(c.Path, "line %d hands files to your driver %s", l.number, d)
				named = true
			}
		}
		if gives, _ := u.about(&a, l); gives && !named {
			r.at(c.Path, "line %d undoes what keeps files from a driver of yours", l.number)
		}
	}
	if l, ok := u.released(&a); ok {
		r.at(c.Path, "it no longer keeps files from a driver of yours as line %d did", l.number)
	}
	return err
}

// unread reports a file in which git does not see all lines, or did not: the rest of the rule takes them for said.
func (u userDriver) unread(a *attributeChange, path string, r *report) {
	for _, f := range []struct {
		content []byte
		lines   []attributeLine
		when    string
	}{{a.content, a.after, ""}, {a.old, a.before, "before, "}} {
		if why := misread(f.content); why != "" {
			r.at(path, "%s%s", f.when, why)
			return
		}
		// In the index, git takes the mark for a part of the first line's pattern.
		if len(f.lines) > 0 && f.lines[0].number == 1 && bytes.HasPrefix(f.content, byteOrderMark) {
			if gives, takes := u.about(a, f.lines[0]); gives || takes {
				r.at(path, "%sgit may not know line 1 behind the byte order mark", f.when)
				return
			}
		}
	}
}

// released finds the line that keeps files from a driver and is gone, or the one that hands them to it and came before. Of what
// several lines say the last counts, and another file may say what this one spoke against.
func (u userDriver) released(a *attributeChange) (attributeLine, bool) {
	left := slices.DeleteFunc(slices.Clone(a.after), func(l attributeLine) bool {
		gives, takes := u.about(a, l)
		return !a.there[l.text()] || !gives && !takes
	})
	for _, l := range a.before {
		if len(left) > 0 && left[0].text() == l.text() {
			left = left[1:]
		} else if _, takes := u.about(a, l); takes {
			return l, true
		}
	}
	for _, l := range left {
		if gives, _ := u.about(a, l); gives {
			return l, true
		}
	}
	return attributeLine{}, false
}

// saying is a state that a line gives to paths, or takes back.
type saying struct {
	state string
	back  bool
}

// about tells whether a line hands files to one of the user's drivers, and whether it takes them from one. A macro that is
// negated, or defined anew, takes back what it said: that hands over what it kept.
func (u userDriver) about(a *attributeChange, l attributeLine) (gives, takes bool) {
	var todo []saying
	for _, state := range l.states {
		todo = append(todo, saying{state, false})
	}
	if a.redefines(l) {
		todo = append(todo, saying{l.macro, true})
	}
	seen := map[saying]bool{}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if seen[s] {
			continue
		}
		seen[s] = true
		name, value, _ := strings.Cut(strings.TrimLeft(s.state, "-!"), "=")
		if u.programs.kinds[name] {
			hands := u.programs.drivers[name+"."+value] != s.back
			gives, takes = gives || hands, takes || !hands
		}
		for _, state := range a.macros[name] {
			todo = append(todo, saying{state, s.back != (name != s.state)})
		}
	}
	return gives, takes
}
