package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// gitPath refuses paths that lead into a repository's own folder on some file system. The quarantine refuses
// those that git knows; this is the second look, with more file systems.
type gitPath struct{ changesOnly }

func (gitPath) describe() Description {
	return Description{ID: "git-path", Default: Hold, Doc: "a path that some file system takes for .git, or that leads upwards: refused as invalid"}
}

func (gitPath) change(_ context.Context, in *inspection, c gitops.Change, _ *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	var bad string
	components(c.Path, func(_, name string) bool {
		switch {
		case name == "" || name == "." || name == "..":
			bad = "has a component that is no name"
		case isGit(name):
			bad = "is .git to some file system"
		}
		return bad == ""
	})
	if bad == "" {
		return nil
	}
	return &gitops.Invalid{Reason: "commit " + string(in.ID) + ": the path \"" + gitops.Escape(c.Path) + "\" " + bad}
}
