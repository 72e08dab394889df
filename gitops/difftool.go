package gitops

import (
	"context"
	"os"
)

// DiffTool runs the user's difftool (git-difftool(1)) on two folders and on this terminal, as git difftool --dir-diff does. tool is the name of a
// difftool, or empty for the one that the user has configured. The tool runs in dir, and not in the work tree, because some tools read
// configuration from the current folder.
func (r *Repository) DiffTool(ctx context.Context, dir, tool, before, after string) error {
	g := *r.Git
	g.Dir, g.base = dir, callerEnvironment // in the user's language, and with all that a window needs
	cmd := g.command(ctx, Call{Args: []string{"difftool--helper", before, after},
		Env: []string{gitDirVariable + "=" + r.GitDir, workTreeVariable + "=" + dir, "GIT_DIFFTOOL_DIRDIFF=true", "GIT_DIFF_TOOL=" + tool}})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
