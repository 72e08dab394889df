package policy

import (
	"context"

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
	added, macros, err := in.addedAttributes(ctx, c, r)
	for _, l := range added {
		for _, d := range l.drivers(macros) {
			if u.programs.drivers[d] {
				r.at(c.Path, "line %d hands files to your driver %s", l.number, d)
			}
		}
	}
	return err
}
