package land

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/far"
)

// find looks for the files that the interrupted landing has displaced. former are its folder and those of earlier recoveries. A file of
// an earlier recovery counts only if it is the user's.
func (c *recovery) find(ctx context.Context, former []string) error {
	c.untouched, c.displaced = map[string]bool{}, map[string]string{}
	for _, change := range c.changes {
		_ = far.Remove(waitingName(c.r, c.scratch, change.Path)) // a copy that was not complete
		for n, dir := range former {
			for _, k := range c.places(dir, change.Path) {
				commit, err := c.classify(ctx, change, k.name)
				switch {
				case err != nil:
					return err
				case commit == c.new.commit:
					c.untouched[k.path] = c.untouched[k.path] || n == 0
					continue
				case commit == c.old.commit:
					c.kept = append(c.kept, k)
				default:
					c.saved = append(c.saved, k)
				}
				if n == 0 {
					c.displaced[k.path] = k.name
				}
			}
		}
		// A file that the landing removes is where it was, or is displaced.
		if !change.New.Present() && c.displaced[change.Path] == "" {
			c.untouched[change.Path] = true
		}
	}
	return nil
}

// places returns the files that a mover with a folder may have displaced from a path, or has prepared for it.
func (c *recovery) places(dir, p string) (found []keptFile) {
	for _, root := range []string{removedOf(dir), treeOf(dir)} {
		if info, err := gitops.LstatBelow(root, p); err == nil && !info.IsDir() {
			found = append(found, keptFile{p, filepath.Join(root, p), info})
		}
	}
	name := besideName(c.r, c.scratch, dir, p)
	if info, err := far.Lstat(name); err == nil && !info.IsDir() {
		found = append(found, keptFile{p, name, info})
	}
	return found
}

// classify returns which of the two commits has the content of a file at a changed path, or none.
func (c *recovery) classify(ctx context.Context, change gitops.Change, name string) (gitops.OID, error) {
	for _, s := range []staged{c.new, c.old} {
		if same, err := c.has(ctx, s, change, name); same || err != nil {
			return s.commit, err
		}
	}
	return "", nil
}

// has reports whether a file has the content of a changed path in a commit, byte for byte as a checkout writes it or according to git. A clean
// filter of the user may fail, and then the file is the user's. If git has used up its processor time, it is an error.
func (c *recovery) has(ctx context.Context, s staged, change gitops.Change, name string) (bool, error) {
	e := c.entry(s.commit, change)
	if e.Present() && sameContent(name, filepath.Join(treeOf(s.dir), change.Path)) {
		return true, nil
	}
	info, err := far.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !e.Regular() || (e.Mode == gitops.ModeExecutable) != (info.Mode()&0o100 != 0) {
		return false, nil
	}
	id, err := c.git(s).Output(ctx, "hash-object", "--path="+change.Path, "--", name)
	if gitops.Spent(err) {
		return false, err
	}
	return err == nil && gitops.OID(strings.TrimSpace(id)) == e.OID, nil
}

// keep returns files to the user that were displaced and that neither commit has. Such a file gets its place if the file there, or the
// absence of one, is the landing's, and a name beside it otherwise.
func (c *recovery) keep(ctx context.Context) error {
	var rest []keptFile
	for _, k := range c.saved {
		if now, err := far.Lstat(k.name); err == nil && os.SameFile(k.info, now) {
			rest = append(rest, k)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	landed, err := c.side(ctx, c.new)
	if err != nil {
		return err
	}
	m := mover{r: c.r, dir: c.new.dir, scratch: c.scratch, seen: c.seen, placed: map[string]os.FileInfo{}}
	var errs []error
	for _, k := range rest {
		if landed[k.path] && far.MkdirAll(filepath.Dir(filepath.Join(c.r.Top, k.path)), 0o777) == nil && m.put(k.path, k.name) == nil {
			continue
		}
		errs = append(errs, c.keepBeside(k))
	}
	return errors.Join(errs...)
}

// keepBeside gives a file that the user saved a free name in its folder, or at the top of the working tree if the folder is gone.
func (c *recovery) keepBeside(k keptFile) error {
	name := k.path
	if info, err := c.r.Lstat(path.Dir(name)); path.Dir(name) != "." && (err != nil || !info.IsDir()) {
		name = path.Base(name)
	}
	to := filepath.Join(c.r.Top, FreeName(c.r.Top, name))
	err := durable.RenameNew(k.name, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(durable.CopyFile(k.name, to), far.Remove(k.name))
}

// sweepBeside removes what is left beside the places of files. It is called only with a journal, and only for folders into which the
// landing puts files.
func (c *recovery) sweepBeside(former []string) {
	for _, change := range c.changes {
		for _, dir := range former {
			_ = far.Remove(besideName(c.r, c.scratch, dir, change.Path))
		}
	}
}
