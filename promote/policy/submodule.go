package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// submodule looks for repositories that git would enter or fetch: plain "git status" runs git in each of them.
type submodule struct{ changesOnly }

func (submodule) describe() Description {
	return documented("submodule", Hold, "a submodule added, moved or removed, or any change of a .gitmodules file")
}

func (submodule) change(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	switch {
	case c.New.Mode == gitops.ModeGitlink:
		r.at(c.Path, "a submodule")
	case c.Old.Mode == gitops.ModeGitlink:
		r.at(c.Path, "a submodule is removed")
	case means(base(c.Path), ".gitmodules"):
		r.at(c.Path, "says where submodules come from")
	}
	return nil
}
