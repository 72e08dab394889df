package land

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

func pathspecs(changes []gitops.Change) []string {
	if len(changes) > gitops.PathspecLimit {
		return nil
	}
	args := []string{"--"}
	for _, c := range changes {
		args = append(args, c.Path)
	}
	return args
}

// guard finds the user's changes that a landing would overwrite.
type guard struct {
	r       *gitops.Repository
	filters landingFilters
	copy    string // path of a copy of the user's index; the function copied makes it
	copied  func() error
	staged  []string // paths that differ between the index and the commit a landing starts from
	merge   []string // those of the staged paths that have conflicts
	flags   bool     // whether the user told git to ignore changes of a changed path
	// nothingStaged reports that the index is known to have exactly the tree of the commit a landing starts from.
	nothingStaged bool
	clean         bool // the index and the working tree are known to have the content of the old commit at all changed paths
}

func (g *guard) git() *gitops.Git {
	return g.r.Configured(g.filters.config...).With("GIT_INDEX_FILE=" + g.copy)
}

// diffIndex lists the paths that differ between the index and a commit.
func (g *guard) diffIndex(ctx context.Context, commit gitops.OID) error {
	records, err := g.git().Records(ctx, gitops.Call{Args: []string{"diff-index", "--cached", "--name-status", "-z", "--no-renames", "--ignore-submodules=none", string(commit)}})
	for i := 0; i+1 < len(records); i += 2 {
		g.staged = append(g.staged, records[i+1])
		if records[i] == "U" {
			g.merge = append(g.merge, records[i+1])
		}
	}
	return err
}

// check returns a *[CollisionError] in two cases: if moving the working tree from a commit along changes would
// overwrite one of the user's staged, unstaged, untracked or ignored changes, or if the index has conflicts, which
// prevent any landing. The folder of another repository that would get a new file is such a path, too.
func (g *guard) check(ctx context.Context, from gitops.OID, changes []gitops.Change) error {
	var unstaged, hidden []string
	var queries []func() error
	if !g.nothingStaged {
		queries = append(queries, func() error { return g.diffIndex(ctx, from) })
	}
	if len(changes) > 0 && !g.clean {
		queries = append(queries,
			func() (err error) { unstaged, err = unstagedPaths(ctx, g.git(), changes); return },
			func() (err error) { hidden, err = g.hidden(ctx, changes); return })
	}
	if len(queries) > 0 {
		if err := g.copied(); err != nil {
			return err
		}
	}
	if err := gitops.Together(queries...); err != nil {
		return err
	}
	if len(g.merge) > 0 {
		return &CollisionError{g.merge}
	}
	touched := make(map[string]gitops.Change, len(changes))
	for _, c := range changes {
		touched[c.Path] = c
	}
	changed, err := g.changed(ctx, append(unstaged, hidden...), touched)
	if err != nil {
		return err
	}
	found := gitops.SetOf(changed...)
	above := foldersAbove(changes)
	for _, p := range g.staged {
		if inTheWay(p, touched, above) {
			found[p] = true
		}
	}
	for _, c := range changes {
		if c.New.Present() {
			found.Add(untracked(g.r, c, touched)...)
		}
	}
	others, err := g.repositories(ctx, changes)
	found.Add(others...)
	if err != nil || len(found) == 0 {
		return err
	}
	return &CollisionError{slices.Sorted(maps.Keys(found))}
}

// changed returns those of the touched paths whose files differ from what a checkout of the index writes. Git reports a file as changed
// also where the clean filter does not restore what is committed, such as CRLF line ends of a text file. If git cannot write the files,
// all are regarded as the user's changes. If git has used up its processor time, it is an error.
func (g *guard) changed(ctx context.Context, paths []string, touched map[string]gitops.Change) ([]string, error) {
	paths = slices.DeleteFunc(paths, func(p string) bool { _, ok := touched[p]; return !ok })
	if len(paths) == 0 {
		return nil, nil
	}
	tree, err := os.MkdirTemp(filepath.Dir(g.copy), "same-")
	if err != nil {
		return paths, nil
	}
	git := stagingGit(g.r, g.copy, tree, g.filters)
	err = lendAttributes(ctx, g.r, git, attributesAbove(g.r, paths), slices.Collect(maps.Values(touched)))
	if err == nil {
		err = checkoutIndex(ctx, git, paths)
	}
	if err != nil && !gitops.Spent(err) {
		return paths, nil
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		return g.r.There(p) && sameContent(filepath.Join(g.r.Top, p), filepath.Join(tree, p))
	}), err
}

// foldersAbove returns the set of folders that must exist for the new files.
func foldersAbove(changes []gitops.Change) map[string]bool {
	above := map[string]bool{}
	for _, c := range changes {
		if !c.New.Present() {
			continue
		}
		for dir := path.Dir(c.Path); dir != "." && !above[dir]; dir = path.Dir(dir) {
			above[dir] = true
		}
	}
	return above
}

// inTheWay reports whether a staged path is one of the touched paths, or is below or above one.
func inTheWay(p string, touched map[string]gitops.Change, above map[string]bool) bool {
	if _, ok := touched[p]; ok || above[p] {
		return true
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if c, ok := touched[dir]; ok && c.New.Present() {
			return true
		}
	}
	return false
}

// unstagedPaths lists the changed paths whose files in the working tree differ from the index of g. If there seem to be any, it refreshes that
// index and compares again. The refresh reads the stat data of the whole working tree.
func unstagedPaths(ctx context.Context, g *gitops.Git, changes []gitops.Change) ([]string, error) {
	call := gitops.Call{Args: append([]string{"diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty"}, pathspecs(changes)...)}
	paths, err := g.Records(ctx, call)
	if err != nil || len(paths) == 0 {
		return paths, err
	}
	err = g.Change(ctx, gitops.Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: io.Discard})
	if err != nil && gitops.Status(err) != 1 { // status 1 means that some are not up to date
		return nil, err
	}
	return g.Records(ctx, call)
}

// hidden lists changed paths that the user told git to ignore (assume-unchanged, skip-worktree), that exist, and that differ from the index.
func (g *guard) hidden(ctx context.Context, changes []gitops.Change) ([]string, error) {
	entries, err := g.git().Records(ctx, gitops.Call{Args: append([]string{"ls-files", "-v", "-z"}, pathspecs(changes)...)})
	if err != nil {
		return nil, err
	}
	flagged := map[string]bool{}
	for _, e := range entries {
		if tag, name, _ := strings.Cut(e, " "); tag == "S" || strings.ToUpper(tag) != tag {
			flagged[name] = true
		}
	}
	var there []gitops.Change
	for _, c := range changes {
		g.flags = g.flags || flagged[c.Path]
		if flagged[c.Path] && g.r.There(c.Path) {
			there = append(there, c)
		}
	}
	if len(there) == 0 {
		return nil, nil
	}
	return g.unhidden(ctx, there)
}

// unhidden returns the paths among the changes whose files differ from an index without the flags of hidden.
func (g *guard) unhidden(ctx context.Context, changes []gitops.Change) ([]string, error) {
	open, err := os.CreateTemp(filepath.Dir(g.copy), "open-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(open.Name())
	_, err = copyIndex(g.copy, open.Name())
	if err := errors.Join(err, open.Close()); err != nil {
		return nil, err
	}
	var names strings.Builder
	for _, c := range changes {
		names.WriteString(c.Path + "\x00")
	}
	git := g.git().With("GIT_INDEX_FILE=" + open.Name())
	for _, flag := range []string{"--no-assume-unchanged", "--no-skip-worktree"} {
		if err := git.Change(ctx, gitops.Call{Args: []string{"update-index", flag, "-z", "--stdin"}, Stdin: strings.NewReader(names.String())}); err != nil {
			return nil, err
		}
	}
	return unstagedPaths(ctx, git, changes)
}

// untracked lists files that would be lost because they are at the path of a new file, or at the path of a folder above it. Ignored files count.
func untracked(r *gitops.Repository, c gitops.Change, touched map[string]gitops.Change) []string {
	gone := func(p string) bool { t, ok := touched[p]; return ok && t.Old.Present() }
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		info, err := r.Lstat(dir)
		if err == nil && !info.IsDir() && !gone(dir) {
			return []string{dir}
		}
	}
	info, err := r.Lstat(c.Path)
	switch {
	case err != nil:
		return nil
	case !info.IsDir():
		if c.Old.Present() {
			return nil // tracked: other checks find staged and unstaged changes
		}
		return []string{c.Path}
	case c.Old.Gitlink() && c.New.Gitlink():
		return nil
	}
	return lostBelow(r, filepath.Join(r.Top, c.Path), gone)
}

// repositories lists the folders of other repositories into which new files would be written, such as another worktree below this
// one. Git does not keep out of them, and their hooks and settings can name what an agent writes there. A bare repository with files
// that this repository tracks belongs to it.
func (g *guard) repositories(ctx context.Context, changes []gitops.Change) (found []string, err error) {
	seen := map[string]bool{}
	for _, c := range changes {
		if !c.New.Present() || c.Old.Present() {
			continue
		}
		for dir := path.Dir(c.Path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			other := g.r.There(path.Join(dir, ".git"))
			if !other && bare(g.r, dir) {
				if err := g.copied(); err != nil {
					return nil, err
				}
				tracked, err := g.git().Records(ctx, gitops.Call{Args: []string{"ls-files", "-z", "--", dir}})
				if err != nil {
					return nil, err
				}
				other = len(tracked) == 0
			}
			if other {
				found = append(found, dir)
			}
		}
	}
	return found, nil
}

// bare reports whether git would take a folder for a repository without a working tree.
func bare(r *gitops.Repository, dir string) bool {
	return r.There(path.Join(dir, "HEAD")) && r.There(path.Join(dir, "objects")) && r.There(path.Join(dir, "refs"))
}

// lostBelow lists the files in a folder that will not be removed before.
func lostBelow(r *gitops.Repository, folder string, gone func(string) bool) []string {
	var lost []string
	_ = filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.Top, p)
		if err != nil || relErr != nil {
			lost = append(lost, filepath.ToSlash(rel)) // a folder that cannot be read cannot be kept either
			return nil
		}
		if !d.IsDir() && !gone(filepath.ToSlash(rel)) {
			lost = append(lost, filepath.ToSlash(rel))
		}
		return nil
	})
	return lost
}
