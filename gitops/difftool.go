package gitops

import (
	"context"
	"os"
)

// DiffTool runs the user's difftool (git-difftool(1)) on two folders, as git difftool --dir-diff does, on this terminal. tool
// is the name of one, or empty for the one that the user has configured. The current folder of the tool is dir, and not the
// work tree: some tools read configuration from the current folder.
func (r *Repository) DiffTool(ctx context.Context, dir, tool, before, after string) error {
	g := *r.Git
	g.Dir, g.base = dir, callerEnvironment // in the user's language, and with all that a window needs
	cmd := g.command(ctx, Call{Args: []string{"difftool--helper", before, after},
		Env: []string{gitDirVariable + "=" + r.GitDir, workTreeVariable + "=" + dir, "GIT_DIFFTOOL_DIRDIFF=true", "GIT_DIFF_TOOL=" + tool}})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
