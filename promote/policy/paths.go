package policy

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// oddPath finds names that a terminal, another tool or another file system would take for different names.
func oddPath(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 || c.Old.Mode != 0 {
		return nil // the user already has this name
	}
	pathname.Components(c.Path, func(_, name string) bool {
		if why := odd(name); why != "" {
			r.at(c.Path, "%s", why)
			return false
		}
		if why := nowhereElse(name); why != "" {
			r.mention(c.Path, "%s", why)
		}
		return true
	})
	return nil
}

// nowhereElse returns the reason why a name cannot be used on some system, or empty. Such a name cannot be confused
// with another one.
func nowhereElse(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "a name that is not UTF-8, which macOS refuses"
	case strings.ContainsAny(name, `<>"|?*`):
		return "a character that Windows refuses"
	}
	return ""
}

// odd returns what is unusual about a name, or empty.
func odd(name string) string {
	switch {
	case strings.IndexFunc(name, gitops.Hidden) >= 0:
		return "a name with a control or invisible character"
	case strings.Contains(name, `\`):
		return "a backslash, which is a slash on Windows"
	case strings.Contains(name, ":"):
		return "a colon, which is part of a drive or a hidden stream on Windows"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a dot or space at the end, which Windows leaves out"
	case pathname.SpaceAtEdge(name):
		return "a wide or no-break space at an end, which looks like no character"
	case pathname.Device(name):
		return "the name of a device on Windows"
	case pathname.ShortName(name):
		return "a name that Windows gives to another file"
	}
	return ""
}

// gitPath refuses paths that lead into a repository's .git folder on some file system. The quarantine already refuses
// the paths that git knows. This rule covers more file systems. It also refuses a submodule whose path goes through a
// workspace: with diff.submodule=diff, a plain git log -p of a pending commit runs git in the folder of the submodule
// (submodule.c), where git obeys the agent's configuration.
func gitPath(_ context.Context, in *inspection, c gitops.Change, _ *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	var bad string
	pathname.Components(c.Path, func(_, name string) bool {
		switch {
		case name == "" || name == "." || name == "..":
			bad = "has a component that is not a name"
		case pathname.IsGit(name):
			bad = "is .git on some file system"
		case c.New.Mode == gitops.ModeGitlink && isWorkspace(name):
			bad = "is a submodule in a workspace"
		}
		return bad == ""
	})
	if bad == "" {
		return nil
	}
	return &inner.Invalid{Reason: "commit " + string(in.ID) + ": the path \"" + gitops.Text(c.Path).String() + "\" " + bad}
}

// isWorkspace reports whether a name may stand for the workspace of an airlock: of this one, or of one in another
// repository below the same folder.
func isWorkspace(name string) bool {
	_, is := identity.ParseWorkspaceName(pathname.Plain(name))
	return is
}

// caseCollision finds names that differ only in case or in the composition of accents. On some file systems, such
// files are the same file, and the one that is written last wins.
func caseCollision(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 || c.Old.Mode != 0 {
		return nil
	}
	var failed error
	pathname.Components(c.Path, func(dir, name string) bool {
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
			return true // they collided before the commit
		}
		other := group.names[0]
		if other == name {
			other = group.names[1]
		}
		r.at(c.Path, "%q and %q are one on some file systems", pathname.Join(dir, name), pathname.Join(dir, other))
		return false
	})
	return failed
}
