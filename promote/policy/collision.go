package policy

import (
	"context"

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
		group := here.alike(name)
		if len(group.names) < 2 {
			return true
		}
		before, err := in.parent.at(ctx, dir)
		if err != nil {
			failed = err
			return false
		}
		if group.allIn(before) {
			return true // they collided before
		}
		other := group.names[0]
		if other == name {
			other = group.names[1]
		}
		r.at(c.Path, "%q and %q are one on some file systems", join(dir, name), join(dir, other))
		return false
	})
	return failed
}
