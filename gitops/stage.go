package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// build makes the next index, and the new files as a checkout would write them, smudged by the user's own
// filters, in a working tree of their own. Renamed into place later, each is at any instant old or new, never half.
func (l *landing) build(ctx context.Context, filters []string) error {
	if err := os.Mkdir(l.staged(), 0o700); err != nil {
		return err
	}
	g := l.r.stagingGit(l.next(), l.staged(), filters)
	// A working tree with nothing in it collides with nothing; the user's was checked, with better words.
	err := g.Change(ctx, Call{Args: []string{"read-tree", "-m", "-u", string(l.Old), string(l.New)}, Stdout: io.Discard})
	if err != nil {
		return errors.Join(l.unmerged(ctx), err)
	}
	if err := l.buildHidden(ctx, g); err != nil {
		return err
	}
	return syncFiles(l.staged(), present(l.changes))
}

// buildHidden writes files that a sparse checkout leaves out but that lie in the working tree: git takes
// them for checked out where they lie, and the staging area does not show that.
func (l *landing) buildHidden(ctx context.Context, g *Git) error {
	var names []string
	for _, c := range l.changes {
		if info := l.seen[c.Path]; info == nil || info.IsDir() || !c.New.present() || c.New.gitlink() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(l.staged(), c.Path)); errors.Is(err, fs.ErrNotExist) {
			names = append(names, c.Path)
		}
	}
	return checkoutIndex(ctx, g, names)
}

// unmerged returns a *[CollisionError] if the index has conflicts, which hinder any landing.
func (l *landing) unmerged(ctx context.Context) error {
	g := l.r.with("GIT_INDEX_FILE=" + l.next())
	entries, err := g.records(ctx, Call{Args: []string{"diff-index", "--cached", "--name-only", "--diff-filter=U", "-z", string(l.Old)}})
	if err != nil || len(entries) == 0 {
		return err
	}
	return &CollisionError{entries}
}

// stagingGit runs git on an index of ours in a working tree of ours.
func (r *Repository) stagingGit(index, tree string, filters []string) *Git {
	g := r.durable().configured(filters...).with("GIT_INDEX_FILE="+index, "GIT_DIR="+r.GitDir, "GIT_WORK_TREE="+tree)
	g.dir = tree
	return g
}

// checkoutIndex writes the named paths of g's index into its working tree.
func checkoutIndex(ctx context.Context, g *Git, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return g.Change(ctx, Call{Args: []string{"checkout-index", "-q", "-f", "--ignore-skip-worktree-bits", "-z", "--stdin"},
		Stdin: strings.NewReader(strings.Join(names, "\x00") + "\x00"), Stdout: io.Discard})
}

// stageCommit writes the paths that changes name as they are in a commit into a new folder of scratch, and the commit's
// index beside it. The folder's name is new each time: a recovery that was killed may have left its locks, and a git at
// work, in the last one.
func (r *Repository) stageCommit(ctx context.Context, scratch string, commit OID, paths []string) (index, tree string, err error) {
	dir, err := os.MkdirTemp(scratch, "stage-")
	if err != nil {
		return "", "", err
	}
	index, tree = filepath.Join(dir, "index"), filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return "", "", err
	}
	filters, err := r.filtersAtTop(ctx)
	if err != nil {
		return "", "", err
	}
	g := r.stagingGit(index, tree, filters)
	if err := g.Change(ctx, Call{Args: []string{"read-tree", string(commit)}}); err != nil {
		return "", "", err
	}
	if err := checkoutIndex(ctx, g, paths); err != nil {
		return "", "", err
	}
	return index, tree, syncFiles(tree, paths)
}

// present lists the changed paths that hold a file afterwards.
func present(changes []Change) []string {
	var names []string
	for _, c := range changes {
		if c.New.present() && !c.New.gitlink() {
			names = append(names, c.Path)
		}
	}
	return names
}

// filtersAtTop is configuration that runs the user's smudge filters at the top of their work tree and in
// their environment, where a plain checkout runs them: a filter may be named relative to it.
func (r *Repository) filtersAtTop(ctx context.Context) ([]string, error) {
	var out bytes.Buffer
	err := r.Look(ctx, Call{Args: []string{"config", "-z", "--get-regexp", `^filter\..*\.(smudge|process)$`}, Stdout: &out})
	if status(err) == 1 {
		return nil, nil // none is configured
	}
	if err != nil {
		return nil, fmt.Errorf("read filters: %w", err)
	}
	prefix := "unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_LITERAL_PATHSPECS GIT_OPTIONAL_LOCKS LC_ALL; "
	if value, set := os.LookupEnv("LC_ALL"); set {
		prefix += "LC_ALL=" + ShellQuote(value) + "; export LC_ALL; "
	}
	for _, variable := range r.place {
		name, value, _ := strings.Cut(variable, "=")
		prefix += name + "=" + ShellQuote(value) + "; export " + name + "; "
	}
	prefix += "cd " + ShellQuote(r.Top) + " && "
	escaped := strings.ReplaceAll(prefix, "%", "%%") // a smudge command's %f is its file's name
	var pairs []string
	for rec := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		key, value, _ := strings.Cut(rec, "\n")
		switch {
		case value == "" || strings.Contains(key, "="): // switched off, or beyond what -c can name
		case strings.HasSuffix(key, ".smudge"):
			pairs = append(pairs, key+"="+escaped+value)
		default:
			pairs = append(pairs, key+"="+prefix+value)
		}
	}
	return pairs, nil
}
