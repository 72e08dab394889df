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
	if c.New.Mode != "" && len(u.programs.drivers) > 0 && means(base(c.Path), ".gitattributes") {
		return u.attributes(ctx, in, c, r)
	}
	return nil
}

// attributes looks at the lines that a file of attributes did not have before.
func (u userDriver) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return err
	}
	macros, err := u.macros(ctx, in)
	if err != nil {
		return err
	}
	before := map[string]bool{}
	for _, l := range parseAttributes(old) {
		before[l.text()] = true
	}
	for _, l := range parseAttributes(content) {
		for _, d := range l.drivers(macros) {
			if u.programs.drivers[d] && !before[l.text()] {
				r.at(c.Path, "line %d hands files to your driver %s", l.number, d)
			}
		}
	}
	return nil
}

// macros are those of the tree's top, where alone they can be defined, before and after the commit.
func (u userDriver) macros(ctx context.Context, in *inspection) (map[string][]string, error) {
	macros := map[string][]string{}
	for _, w := range []*walker{in.parent, in.tree} {
		top, err := w.at(ctx, "")
		if err != nil || top == nil {
			return macros, err
		}
		content, err := in.content(ctx, top.entries[".gitattributes"])
		if err != nil {
			return nil, err
		}
		for name, states := range macrosOf(parseAttributes(content)) {
			macros[name] = append(macros[name], states...)
		}
	}
	return macros, nil
}

func (l attributeLine) text() string {
	return strings.Join(slices.Concat([]string{l.pattern, l.macro}, l.states), "\x00")
}
