package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// makesRepository are the entries that make a folder a repository (is_git_directory in git's setup.c), and obeyed the
// entries that git obeys in it.
var (
	makesRepository = map[string]bool{"head": true, "objects": true, "refs": true, "commondir": true}
	obeyed          = map[string]bool{"config": true, "config.worktree": true, "hooks": true}
)

// otherRepository has the names that make the folder above a repository for another program. Each of these programs takes
// from there the names of programs to run: for its hooks, its server, its signatures.
var otherRepository = pathname.NewTable(
	pathname.Named("Mercurial or Sapling", `.hg/ .sl/`), pathname.Named("Jujutsu", `.jj/`), pathname.Named("Subversion", `.svn/`),
	pathname.Named("Bazaar", `.bzr/`), pathname.Named("Fossil", `_fossil_ .fslckout .fos`), pathname.Named("CVS", `cvs/root`),
	pathname.Named("Darcs", `_darcs/`), pathname.Named("Monotone", `_mtn/`), pathname.Named("Pijul", `.pijul/`), pathname.Named("repo", `.repo/`),
)

// embeddedRepo finds folders that git takes for a repository. In such a folder, every git command obeys the
// configuration in it, including the one that a shell's prompt runs. The same holds for other version control systems.
func embeddedRepo(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	if program := otherRepository().Find(c.Path, c.New.Mode == gitops.ModeLink); program != "" {
		r.at(c.Path, "%s takes the folder above for a repository, and runs programs that are named in it", program)
	}
	var failed error
	pathname.Components(c.Path, func(dir, name string) bool {
		key := pathname.Plain(name)
		if !makesRepository[key] && !obeyed[key] {
			return true
		}
		is, err := isRepository(ctx, in.tree, dir)
		was := false
		if is && err == nil {
			was, err = isRepository(ctx, in.parent, dir)
		}
		if failed = err; err != nil {
			return false
		}
		if !is || was && !obeyed[key] && key != "commondir" {
			return true // no repository, or objects and refs of one that the user already has
		}
		r.at(c.Path, "git takes the folder %q for a repository", dir+"/")
		return false
	})
	return failed
}

// isRepository reports whether git would take a folder for a repository, on any file system. It does not read HEAD.
func isRepository(ctx context.Context, w *walker, dir string) (bool, error) {
	f, err := w.at(ctx, dir)
	if err != nil || f == nil {
		return false, err
	}
	has := func(name string) bool { return len(f.alike(name).names) > 0 }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir")), nil
}

// submodule finds repositories that git would enter or fetch. Even "git status" runs git in each of them.
func submodule(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	switch {
	case c.New.Mode == gitops.ModeGitlink:
		r.at(c.Path, "a submodule")
	case c.Old.Mode == gitops.ModeGitlink:
		r.at(c.Path, "a submodule is removed")
	case isModules(c.Path):
		r.at(c.Path, "defines where submodules come from")
	}
	return nil
}

func isModules(path string) bool { return pathname.Means(pathname.Base(path), ".gitmodules") }
