package land

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/far"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/words"
)

// buildTime and pathTime bound the processor time of each git command of a landing, of the check before it, and of a recovery. Git writes 2 GiB
// in ten seconds, on a slow machine in forty, and can match patterns of attributes for years.
var buildTime, pathTime = 2 * time.Minute, 5 * time.Millisecond

// bounded returns the repository with this limit for a number of changed paths.
func bounded(r *gitops.Repository, changes int) *gitops.Repository {
	own := *r
	own.Git = r.WithProcessor(buildTime + time.Duration(changes)*pathTime)
	return &own
}

// build makes the next index, and the new files as a checkout would write them, with the user's own smudge filters,
// in a separate working tree. The files are later renamed into place, so that each is either old or new at any
// moment. flags reports that entries of the index carry more than the trees contain.
func (l *landing) build(ctx context.Context, flags bool) error {
	if err := os.Mkdir(l.staged(), 0o700); err != nil {
		return err
	}
	g := stagingGit(l.r, l.next(), l.staged(), l.filters)
	g = g.Configured("core.fsync=none") // refresh syncs the index
	way := l.byTrees
	if !flags && l.separable() {
		way = l.byEntries
	}
	if found := attributesAbove(l.r, present(l.changes)); len(found) > 0 {
		if err := l.copied(); err != nil {
			return err
		}
		if err := lendAttributes(ctx, l.r, g, found, l.changes); err != nil {
			return err
		}
	}
	if err := way(ctx, g); err != nil {
		return l.filterFault(err)
	}
	// Git must check the files of entries that are as young as the index, but these files are not in this working tree. It checks them at
	// their final place later.
	if l.before != nil && l.entered == nil {
		if err := os.Chtimes(l.next(), l.before.ModTime(), l.before.ModTime()); err != nil {
			return err
		}
	}
	return durable.SyncFiles(l.staged(), present(l.changes))
}

// attributesAbove lists the user's attribute files in the folders above each path, since a checkout reads these.
func attributesAbove(r *gitops.Repository, paths []string) (found []string) {
	met := map[string]bool{}
	for _, p := range paths {
		for dir := path.Dir(p); !met[dir]; dir = path.Dir(dir) {
			met[dir] = true
			name := path.Join(dir, ".gitattributes")
			if info, err := r.Lstat(name); err == nil && info.Mode().IsRegular() {
				found = append(found, name)
			}
		}
	}
	return found
}

// lendAttributes copies the user's untracked attribute files to the working tree of g. It skips an attribute file
// that the landing changes: during a recovery, the file in the working tree may come from another commit than the staged one.
func lendAttributes(ctx context.Context, r *gitops.Repository, g *gitops.Git, found []string, changes []gitops.Change) error {
	if len(found) == 0 {
		return nil
	}
	tracked, err := g.Records(ctx, call(found, "ls-files", "-z"))
	if err != nil {
		return err
	}
	known := gitops.SetOf(tracked...)
	for _, c := range changes { // the landing brings these itself
		known[c.Path] = true
	}
	for _, name := range found {
		if known[name] {
			continue
		}
		to := filepath.Join(g.Dir, name)
		if err := errors.Join(far.MkdirAll(filepath.Dir(to), 0o700), durable.CopyFile(filepath.Join(r.Top, name), to)); err != nil {
			return err
		}
	}
	return nil
}

// separable reports whether the changes can be entered into the index one by one, which stays fast for large trees.
// It returns false for a sparse checkout and for changed attributes, for which git needs the trees.
func (l *landing) separable() bool {
	sparse, err := l.Config.Bool("core.sparseCheckout", false)
	return err == nil && !sparse && !slices.ContainsFunc(l.changes, func(c gitops.Change) bool { return path.Base(c.Path) == ".gitattributes" })
}

// byEntries makes the new index from the user's, in memory if that is possible. Then it is written while git writes the files.
func (l *landing) byEntries(ctx context.Context, g *gitops.Git) error {
	if x := l.plain; x != nil && x.enter(l.changes, l.treesOf(ctx)) {
		l.entered = x
		l.writing.Go(func() { l.written = x.write(l.next(), l.mode()) })
		name := filepath.Join(l.scratch, "small")
		if err := os.WriteFile(name, x.small(l.changes), 0o600); err != nil {
			return err
		}
		return checkoutIndex(ctx, g.With("GIT_INDEX_FILE="+name), present(l.changes))
	}
	if err := l.copied(); err != nil {
		return err
	}
	if err := enter(ctx, g, l.changes, l.New.Zero()); err != nil {
		return err
	}
	return checkoutIndex(ctx, g, present(l.changes))
}

func (l *landing) byTrees(ctx context.Context, g *gitops.Git) error {
	if err := l.copied(); err != nil {
		return err
	}
	// An empty working tree has no collisions. The user's working tree was checked before, with better error
	// messages.
	err := g.Change(ctx, gitops.Call{Args: []string{"read-tree", "-m", "-u", string(l.Old), string(l.New)}, Stdout: io.Discard})
	if err != nil {
		return err
	}
	return l.buildHidden(ctx, g)
}

// enter makes the changes in the index of g. It removes paths first, since new paths may be in their place.
func enter(ctx context.Context, g *gitops.Git, changes []gitops.Change, zero gitops.OID) error {
	var gone, entries strings.Builder
	for _, c := range changes {
		if c.New.Present() {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", c.New.Mode, c.New.OID, c.Path)
		} else {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", zero, c.Path)
		}
	}
	if gone.Len()+entries.Len() == 0 {
		return nil
	}
	return g.Change(ctx, gitops.Call{Args: []string{"update-index", "-z", "--index-info"}, Stdin: strings.NewReader(gone.String() + entries.String())})
}

// buildHidden writes files that a sparse checkout excludes but that exist in the working tree. Git treats such
// files as checked out, but in the staging area they do not exist.
func (l *landing) buildHidden(ctx context.Context, g *gitops.Git) error {
	var names []string
	for _, c := range l.changes {
		if info := l.seen[c.Path]; info == nil || info.IsDir() || !c.New.Present() || c.New.Gitlink() {
			continue
		}
		if _, err := far.Lstat(filepath.Join(l.staged(), c.Path)); errors.Is(err, fs.ErrNotExist) {
			names = append(names, c.Path)
		}
	}
	return checkoutIndex(ctx, g, names)
}

// stagingGit returns a Git that uses our own index and working tree.
func stagingGit(r *gitops.Repository, index, tree string, filters landingFilters) *gitops.Git {
	g := r.Durable().Configured(filters.config...).With("GIT_INDEX_FILE="+index, "GIT_DIR="+r.GitDir, "GIT_WORK_TREE="+tree)
	g.Dir = tree
	return g
}

// checkoutIndex writes the named paths of g's index into its working tree.
func checkoutIndex(ctx context.Context, g *gitops.Git, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return g.Change(ctx, gitops.Call{Args: []string{"checkout-index", "-q", "-f", "--ignore-skip-worktree-bits", "-z", "--stdin"},
		Stdin: strings.NewReader(strings.Join(names, "\x00") + "\x00"), Stdout: io.Discard})
}

// staged is the index of a commit, and changed files as they are in that commit.
type staged struct {
	commit     gitops.OID
	dir, index string
}

// stageCommit writes changed paths, as they are in a commit, into a new folder of scratch, and the commit's index beside it. The name of the
// folder is new each time, since a recovery that was killed may have left its locks, or a running git, in the previous one.
func (c *recovery) stageCommit(ctx context.Context, commit gitops.OID) (staged, error) {
	dir, err := os.MkdirTemp(c.scratch, stagePrefix)
	if err != nil {
		return staged{}, err
	}
	s := staged{commit, dir, filepath.Join(dir, "index")}
	if err := os.Mkdir(treeOf(dir), 0o700); err != nil {
		return s, err
	}
	g := c.git(s)
	if err := g.Change(ctx, gitops.Call{Args: []string{"read-tree", string(commit)}}); err != nil {
		return s, err
	}
	var paths []string
	for _, change := range c.changes {
		if e := c.entry(commit, change); e.Present() && !e.Gitlink() {
			paths = append(paths, change.Path)
		}
	}
	if err := lendAttributes(ctx, c.r, g, attributesAbove(c.r, paths), c.changes); err != nil {
		return s, err
	}
	if err := checkoutIndex(ctx, g, paths); err != nil {
		return s, err
	}
	return s, durable.SyncFiles(treeOf(dir), paths)
}

// stagePrefix begins the names of the folders in which recoveries stage commits.
const stagePrefix = "stage-"

// git returns a Git that uses the index and the files of a staged commit.
func (c *recovery) git(s staged) *gitops.Git {
	return stagingGit(c.r, s.index, treeOf(s.dir), c.filters)
}

// entry returns the entry of a changed path in one of the two commits.
func (c *recovery) entry(commit gitops.OID, change gitops.Change) gitops.Entry {
	if commit == c.Old {
		return change.Old
	}
	return change.New
}

// present lists the changed paths that have a file after the changes.
func present(changes []gitops.Change) []string {
	var names []string
	for _, c := range changes {
		if c.New.Present() && !c.New.Gitlink() {
			names = append(names, c.Path)
		}
	}
	return names
}

// filtersAtTop returns configuration that runs the user's filters at the top of their work tree and in their environment, and takes a relative
// core.attributesFile from there, as a plain checkout does. The command of a filter may be a relative path, too.
func filtersAtTop(r *gitops.Repository, config gitops.Config, lfs bool) []string {
	prefix := "unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_LITERAL_PATHSPECS GIT_OPTIONAL_LOCKS LC_ALL; "
	if value, set := os.LookupEnv("LC_ALL"); set {
		prefix += "LC_ALL=" + words.ShellQuote(value) + "; export LC_ALL; "
	}
	for _, variable := range r.Place {
		name, value, _ := strings.Cut(variable, "=")
		prefix += name + "=" + words.ShellQuote(value) + "; export " + name + "; "
	}
	prefix += "cd " + words.ShellQuote(r.Top) + " && "
	var pairs []string
	for _, key := range config.Keys() {
		switch value := config[key]; {
		case key == "core.attributesfile":
			pairs = append(pairs, key+"="+hostenv.AtTop(value, r.Top))
		// disabled, or not possible with -c
		case !strings.HasPrefix(key, "filter.") || value == "" || strings.Contains(key, "="):
		case strings.HasSuffix(key, ".smudge"), strings.HasSuffix(key, ".clean"):
			if !reaches(config, key, lfs) {
				value = withoutNetwork(value, "%f")
			}
			// git replaces %f by the name of the file in both
			pairs = append(pairs, key+"="+strings.ReplaceAll(prefix, "%", "%%")+value)
		case strings.HasSuffix(key, ".process"):
			if !reaches(config, key, lfs) {
				value = withoutNetwork(value, "")
			}
			pairs = append(pairs, key+"="+prefix+value)
		}
	}
	return pairs
}
