package policy

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// caseCollision looks for names that differ only in case or in how accents are composed: on some file systems
// the files that have them are one, and whichever is written last wins.
type caseCollision struct{ changesOnly }

func (caseCollision) describe() Description {
	return documented("case-collision", Hold, "a name that differs from another one in its folder only in case or in how accents are composed")
}

func (caseCollision) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 || c.Old.Mode != 0 {
		return nil
	}
	var failed error
	components(c.Path, func(dir, name string) bool {
		here, err := in.tree.at(ctx, dir)
		if err != nil || here == nil {
			failed = err
			return false
		}
		others := slices.Clone(here.alike(name))
		if len(others) < 2 {
			return true
		}
		before, err := in.parent.at(ctx, dir)
		if err != nil {
			failed = err
			return false
		}
		others = slices.DeleteFunc(others, func(o string) bool { return o == name })
		if before.has(name) && before.has(others...) {
			return true // it collided before
		}
		slices.Sort(others)
		r.at(c.Path, "%q and %q are one on some file systems", join(dir, name), join(dir, others[0]))
		return false
	})
	return failed
}

// has tells whether a folder has all of the names. A folder that is not there has none.
func (f *folder) has(names ...string) bool {
	for _, n := range names {
		if f == nil || f.entries[n].Mode == 0 {
			return false
		}
	}
	return true
}
