package land

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/far"
)

// Recover finishes or takes back an interrupted landing, if there is one in dir. It finishes the landing if the
// branch has moved, and takes it back otherwise. It removes only locks that are proved to be the landing's, and
// never writes a path that has neither the old nor the new content. When taking back, it returns such paths in a
// *[CollisionError], and the journal stays until the user has staged, restored or committed them. When finishing,
// such paths stay as the user's changes.
func Recover(ctx context.Context, r *gitops.Repository, dir string) error {
	j, err := readJournal(dir)
	if err != nil {
		return err
	}
	if r.Dry {
		if j != nil {
			return gitops.ErrDryRun
		}
		return nil
	}
	token, err := ownToken(dir)
	if err != nil {
		return err
	}
	lock := filepath.Join(r.GitDir, "index.lock")
	if j == nil {
		token.unlock(lock)
		sweep(dir)
		return nil
	}
	if err := release(r, j.Holder, j.Locks); err != nil {
		return err
	}
	if err := j.lockIndex(r, dir, token, lock); err != nil {
		return fmt.Errorf("recover the landing of %s: %w", j.New, err)
	}
	rec := &recovery{journal: *j, r: bounded(r, 0), scratch: filepath.Join(dir, j.Scratch)}
	err = rec.run(ctx)
	if err == nil {
		err = removeJournal(r, dir)
	}
	awaitCommits(r)
	// The index is unlocked even if the recovery is not finished, because the user may need it to remove the obstacle.
	token.unlock(lock)
	if err != nil {
		return fmt.Errorf("recover the landing of %s: %w", j.New, err)
	}
	sweep(dir)
	return nil
}

// lockIndex takes the lock of the index, unless the landing still has it. If the landing has lost the lock, lockIndex first notes that in the
// journal. Otherwise, if this recovery is killed, the next one would take the lock of this one for that of the landing.
func (j *journal) lockIndex(r *gitops.Repository, dir string, token token, lock string) error {
	if token.owns(lock) {
		return nil
	}
	if !j.Lost {
		j.Lost = true
		if err := j.write(dir); err != nil {
			return err
		}
	}
	if err := token.write(); err != nil {
		return err
	}
	// The user may have changed the index until now, but not from now on.
	return token.lock(lock, func() error { return unhindered(r) })
}

// recovery is the state of one Recover.
type recovery struct {
	journal
	r       *gitops.Repository
	scratch string
	filters landingFilters
	changes []gitops.Change
	left    map[string]bool // true for paths that git was told to skip and that had no file before the landing

	old, new  staged
	seen      map[string]os.FileInfo // the files of the working tree, from before their content was last checked
	untouched map[string]bool        // paths whose prepared file the landing has not put into its place
	displaced map[string]string      // files that the landing has displaced, by path
	kept      []keptFile             // those that have the content of the old commit
	saved     []keptFile             // those displaced by the landing or an earlier recovery that neither commit has
}

func (c *recovery) run(ctx context.Context) error {
	tip, err := c.r.Ref(ctx, string(c.Branch))
	if err != nil {
		return err
	}
	config, err := c.r.Config(ctx)
	if err != nil {
		return err
	}
	if c.filters, err = filtersOf(ctx, c.r, nil, config, cmp.Or(c.Begun, c.Old), c.Old, c.New); err != nil {
		return err
	}
	if err := c.readChanges(ctx); err != nil {
		return err
	}
	c.r = bounded(c.r, len(c.changes))
	if err := os.MkdirAll(c.scratch, 0o700); err != nil {
		return err
	}
	former := append([]string{c.scratch}, gitops.Glob(c.scratch, stagePrefix+"*")...)
	if c.old, err = c.stageCommit(ctx, c.Old); err != nil {
		return err
	}
	if c.new, err = c.stageCommit(ctx, c.New); err != nil {
		return err
	}
	if err := c.find(ctx, former); err != nil {
		return err
	}
	direction := c.back
	if c.hasMoved(ctx, tip) {
		direction = c.forward
	}
	err = direction(ctx)
	if kept := c.keep(ctx); kept != nil {
		return errors.Join(err, kept)
	}
	if err == nil {
		c.sweepBeside(append(former, c.old.dir, c.new.dir))
	}
	return err
}

// hasMoved reports whether the landing has moved the branch. The user may have moved it on since.
func (c *recovery) hasMoved(ctx context.Context, tip gitops.OID) bool {
	if tip == c.New || tip == c.Old || tip == "" {
		return tip == c.New
	}
	if c.r.IsAncestor(ctx, c.New, c.Old) { // a landing back to an ancestor: a tip on top of Old reaches New as well
		return c.r.IsAncestor(ctx, c.New, tip) && !c.r.IsAncestor(ctx, c.Old, tip)
	}
	return c.r.IsAncestor(ctx, c.New, tip)
}

// forward completes a landing that has moved the branch: the other refs of the transaction (git moves them one after the other), the index, and
// files that did not reach the disk before a power failure.
func (c *recovery) forward(ctx context.Context) error {
	for _, u := range slices.Concat(c.First, c.Refs) {
		if err := c.complete(ctx, u); err != nil {
			return err
		}
	}
	if !standsOn(ctx, c.r, string(c.Branch)) {
		return nil // the user has switched to another branch, and the files belong to that
	}
	if err := c.forwardIndex(ctx); err != nil {
		return err
	}
	old, err := c.side(ctx, c.old)
	if err != nil {
		return err
	}
	skipped, err := c.skipped(ctx) // from the new index, since a sparse checkout leaves out new files, too
	if err != nil {
		return err
	}
	var rest []gitops.Change
	for _, change := range c.changes {
		if old[change.Path] && (change.Old.Present() || !skipped[change.Path]) {
			rest = append(rest, change)
		}
	}
	written := mover{kept: c.kept}
	return cmp.Or(c.move(c.new, rest, nil), written.verify())
}

// complete makes an update that may have been made already.
func (c *recovery) complete(ctx context.Context, u gitops.RefUpdate) error {
	now, err := c.r.Ref(ctx, u.Ref)
	if err != nil || now != u.Old || now == u.New {
		return err
	}
	return c.r.UpdateRefs(ctx, c.Message, u)
}

// forwardIndex moves the prepared index into place. If other commands had the lock of the index meanwhile, it keeps
// their entries, path by path, since the user's staged changes have precedence.
func (c *recovery) forwardIndex(ctx context.Context) error {
	index, next := filepath.Join(c.r.GitDir, "index"), filepath.Join(c.scratch, "index")
	if !c.Lost {
		if err := os.Rename(next, index); err == nil || errors.Is(err, os.ErrNotExist) {
			return gitops.Unless(err, os.ErrNotExist) // missing: renamed before the crash
		}
	}
	moved, err := c.moved(ctx)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(c.changes), func(change gitops.Change) bool { return moved[change.Path] })
	if len(rest) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(c.scratch, "stage-")
	if err != nil {
		return err
	}
	next = filepath.Join(dir, "index")
	if _, err := copyIndex(index, next); err != nil {
		return err
	}
	g := c.r.Durable().With("GIT_INDEX_FILE=" + next)
	if err := enter(ctx, g, rest, c.New.Zero()); err != nil {
		return err
	}
	if err := refreshByGit(ctx, c.r, next, c.changes, c.filters); err != nil {
		return err
	}
	if err := durable.SyncPath(next); err != nil {
		return err
	}
	return os.Rename(next, index)
}

// back restores the old content of every changed path, unless the user has changed the path since.
func (c *recovery) back(ctx context.Context) error {
	for _, u := range c.First {
		if err := c.complete(ctx, gitops.RefUpdate{Ref: u.Ref, Old: u.New, New: u.Old}); err != nil {
			return err
		}
	}
	moved, err := c.moved(ctx)
	if err != nil {
		return err
	}
	old, err := c.side(ctx, c.old)
	if err != nil {
		return err
	}
	var rest []gitops.Change
	for _, change := range c.changes {
		if p := change.Path; !old[p] && !moved[p] {
			rest = append(rest, gitops.Change{Path: p, Old: change.New, New: change.Old})
		}
	}
	landed, err := c.side(ctx, c.new)
	if err != nil {
		return err
	}
	var undo []gitops.Change
	var collided []string
	for _, change := range rest {
		if landed[change.Path] {
			undo = append(undo, change)
		} else if !c.left[change.Path] && !c.untouched[change.Path] {
			collided = append(collided, change.Path)
		}
	}
	if err := c.move(c.old, undo, c.displaced); err != nil {
		return err
	}
	if len(collided) > 0 {
		return &CollisionError{collided}
	}
	return nil
}

// move changes the working tree to the content of a commit, in the same way as a landing. from has files to be used instead of staged ones.
func (c *recovery) move(s staged, changes []gitops.Change, from map[string]string) error {
	m := mover{r: c.r, dir: s.dir, scratch: c.scratch, seen: c.seen, from: from}
	return cmp.Or(m.move(changes), m.verify())
}

// moved returns the set of changed paths at which the user's index differs from its state before the landing.
func (c *recovery) moved(ctx context.Context) (map[string]bool, error) {
	paths, err := c.r.Records(ctx, gitops.Call{Args: append([]string{"diff-index", "--cached", "--name-only", "-z", "--no-renames",
		"--ignore-submodules=none", string(c.Old)}, pathspecs(c.changes)...)})
	return gitops.SetOf(paths...), err
}

// readChanges lists the changes of the landing. A path that git was told to skip and that had no file before the landing counts as new. If it had a
// file, it was landed like all others.
func (c *recovery) readChanges(ctx context.Context) (err error) {
	if c.changes, err = c.r.Diff(ctx, c.Old, c.New); err != nil {
		return err
	}
	skipped, err := c.skipped(ctx)
	if err != nil {
		return err
	}
	c.left = map[string]bool{}
	for _, name := range c.Absent {
		c.left[string(name)] = skipped[string(name)]
	}
	for i, change := range c.changes {
		if c.left[change.Path] {
			c.changes[i].Old = gitops.Entry{}
		}
	}
	return nil
}

// skipped returns the set of paths that git was told to skip in the working tree, as a sparse checkout does.
func (c *recovery) skipped(ctx context.Context) (map[string]bool, error) {
	entries, err := c.r.Records(ctx, gitops.Call{Args: append([]string{"ls-files", "-t", "-z"}, pathspecs(c.changes)...)})
	skipped := map[string]bool{}
	for _, e := range entries {
		if name, found := strings.CutPrefix(e, "S "); found {
			skipped[name] = true
		}
	}
	return skipped, err
}

// side returns the set of changed paths whose content in the working tree is the same as in a commit, either
// according to git, or byte for byte as a checkout writes it. The second check is needed when .gitattributes itself
// has changed.
func (c *recovery) side(ctx context.Context, s staged) (map[string]bool, error) {
	c.seen = lstatAll(c.r, c.changes)
	unstaged, err := unstagedPaths(ctx, c.r.Configured(c.filters.config...).With("GIT_INDEX_FILE="+s.index), c.changes)
	if err != nil {
		return nil, err
	}
	differs, is := gitops.SetOf(unstaged...), map[string]bool{}
	for _, change := range c.changes {
		info, err := c.r.Lstat(change.Path)
		switch e := c.entry(s.commit, change); {
		case e.Present():
			is[change.Path] = !differs[change.Path] ||
				err == nil && sameContent(filepath.Join(c.r.Top, change.Path), filepath.Join(treeOf(s.dir), change.Path))
		default:
			// The commit does not have the path: it is correct if there is no file. Whether it is a folder depends
			// on other paths.
			is[change.Path] = err != nil || info.IsDir()
		}
	}
	return is, nil
}

// sameContent reports whether two files or links are equal, including the permission to execute.
func sameContent(a, b string) bool {
	x, errX := far.Lstat(a)
	y, errY := far.Lstat(b)
	if errX != nil || errY != nil || x.Mode().Type() != y.Mode().Type() || x.Size() != y.Size() || (x.Mode()^y.Mode())&0o100 != 0 {
		return false
	}
	if x.Mode()&os.ModeSymlink != 0 {
		s, errS := far.Readlink(a)
		t, errT := far.Readlink(b)
		return errS == nil && errT == nil && s == t
	}
	s, errS := far.ReadFile(a)
	t, errT := far.ReadFile(b)
	return errS == nil && errT == nil && bytes.Equal(s, t)
}
