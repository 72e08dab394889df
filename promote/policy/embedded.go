package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// embeddedRepo looks for folders that git takes for a repository: in such a folder every git command, also the one
// that a shell's prompt runs, obeys the configuration that lies in it.
type embeddedRepo struct{ changesOnly }

func (embeddedRepo) describe() Description {
	return documented("embedded-repo", Hold, "a folder that git would take for a repository, or the configuration and hooks of one")
}

// makesRepository are the entries that make a folder a repository (is_git_directory in git's setup.c), and obeyed
// those that are obeyed then.
var (
	makesRepository = map[string]bool{"head": true, "objects": true, "refs": true, "commondir": true}
	obeyed          = map[string]bool{"config": true, "config.worktree": true, "hooks": true}
)

func (embeddedRepo) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	var failed error
	components(c.Path, func(dir, name string) bool {
		key := plain(name)
		if !makesRepository[key] && !obeyed[key] {
			return true
		}
		is, err := isRepository(ctx, in.tree, dir)
		if err != nil {
			failed = err
			return false
		}
		if !is {
			return true
		}
		was, err := isRepository(ctx, in.parent, dir)
		if err != nil {
			failed = err
			return false
		}
		if was && !obeyed[key] && key != "commondir" {
			return true // objects and refs of a repository that the user has
		}
		r.at(c.Path, "git takes the folder %q for a repository", dir+"/")
		return false
	})
	return failed
}

// isRepository reports whether git would take a folder for a repository, on any file system. What HEAD says is not
// looked at.
func isRepository(ctx context.Context, w *walker, dir string) (bool, error) {
	f, err := w.at(ctx, dir)
	if err != nil || f == nil {
		return false, err
	}
	has := func(name string) bool { return len(f.alike(name).names) > 0 }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir")), nil
}
