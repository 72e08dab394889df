package policy

import (
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
	before, after, macros, err := in.attributeLines(ctx, c, r)
	for _, l := range added(before, after) {
		for _, d := range l.drivers(macros) {
			if u.programs.drivers[d] {
				r.at(c.Path, "line %d hands files to your driver %s", l.number, d)
			}
		}
	}
	if l, ok := u.released(before, after, macros); ok {
		r.at(c.Path, "it no longer keeps files from a driver of yours as line %d did", l.number)
	}
	return err
}

// released finds the line that keeps files from a driver and is gone, or the one that hands them to it and came before. Of what
// several lines say the last counts, and another file may say what this one spoke against.
func (u userDriver) released(before, after []attributeLine, macros map[string][]string) (attributeLine, bool) {
	there := texts(before)
	left := slices.DeleteFunc(slices.Clone(after), func(l attributeLine) bool {
		gives, takes := u.about(l, macros)
		return !there[l.text()] || !gives && !takes
	})
	for _, l := range before {
		gives, takes := u.about(l, macros)
		switch {
		case len(left) > 0 && left[0].text() == l.text():
			left = left[1:]
		case takes:
			return l, true
		case gives: // it is gone, or comes later
		}
	}
	for _, l := range left {
		if gives, _ := u.about(l, macros); gives {
			return l, true
		}
	}
	return attributeLine{}, false
}

// about tells whether a line hands files to one of the user's drivers, and whether it takes them from one.
func (u userDriver) about(l attributeLine, macros map[string][]string) (gives, takes bool) {
	for _, state := range l.all(macros) {
		name, value, _ := strings.Cut(strings.TrimLeft(state, "-!"), "=")
		switch {
		case u.programs.drivers[name+"."+value]:
			gives = true
		case u.programs.kinds[name]:
			takes = true
		}
	}
	return gives, takes
}
