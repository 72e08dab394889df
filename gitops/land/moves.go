package land

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
)

// moveIn updates the working tree. It first removes files, so that a folder can become a file, and then renames
// files from staging. Each rename is atomic. It returns the files as they were renamed.
func moveIn(r *gitops.Repository, changes []gitops.Change, scratch, staging string) (placed map[string]os.FileInfo, err error) {
	placed = make(map[string]os.FileInfo, len(changes))
	for _, c := range changes {
		if c.Old.Present() && !c.New.Present() {
			killpoint.Reach(stepSwing)
			if err := removeFile(r, c); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range changes {
		if c.New.Present() {
			if placed[c.Path], err = moveOne(r, c, scratch, filepath.Join(staging, c.Path)); err != nil {
				return nil, err
			}
		}
	}
	return placed, nil
}

// moveOne moves one new or changed file into its place, and returns the file as it was renamed, or nil.
func moveOne(r *gitops.Repository, c gitops.Change, scratch, from string) (os.FileInfo, error) {
	to := filepath.Join(r.Top, c.Path)
	if c.New.Gitlink() {
		killpoint.Reach(stepSwing)
		// A file is replaced by the folder of a submodule.
		if c.Old.Present() && !c.Old.Gitlink() {
			if err := removeFile(r, c); err != nil {
				return nil, err
			}
		}
		return nil, os.MkdirAll(to, 0o777)
	}
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // outside a sparse checkout
	}
	killpoint.Reach(stepSwing)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(to); err == nil && info.IsDir() {
		if err := removeEmptyFolders(to); err != nil {
			return nil, err
		}
	}
	return moveFile(from, to, waitingName(scratch))
}

// removeEmptyFolders removes a folder that contains only folders. If it contains anything else, it changes nothing.
func removeEmptyFolders(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = fmt.Errorf("%s is in the way", gitops.Text(p))
		}
		folders = append(folders, p)
		return err
	})
	for _, p := range slices.Backward(folders) {
		if err == nil {
			err = os.Remove(p)
		}
	}
	return err
}

// removeFile removes a file, and the folders that become empty. It leaves the folder of a submodule to the user,
// populated or not.
func removeFile(r *gitops.Repository, c gitops.Change) error {
	// Below a symbolic link of the user there is no tracked file, and the link is not an empty folder.
	if r.There(c.Path) {
		if err := os.Remove(filepath.Join(r.Top, c.Path)); err != nil && !notThere(err) && !c.Old.Gitlink() {
			return err
		}
	}
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		if !r.There(dir) || syscall.Rmdir(filepath.Join(r.Top, dir)) != nil {
			break
		}
	}
	return nil
}

// notThere reports whether nothing exists at a path, or whether one of its folders is a file.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// waitingName is the temporary name of a file beside its destination, for a file that cannot be renamed there from
// another file system. At most one file at a time has this name. The name is as random as the name of the landing's
// scratch folder.
func waitingName(scratch string) string { return "." + filepath.Base(scratch) }

// moveFile renames a file, and returns it as it was then. Across file systems it first copies the file to a name beside the target.
func moveFile(from, to, waiting string) (os.FileInfo, error) {
	inherit(from, filepath.Dir(to))
	touch(from)
	placed, _ := os.Lstat(from)
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return placed, err
	}
	beside := filepath.Join(filepath.Dir(to), waiting)
	if err := gitops.CopyFile(from, beside); err != nil {
		return nil, err
	}
	placed, _ = os.Lstat(beside)
	return placed, os.Rename(beside, to)
}

// touch sets the time of a file to now, when the file becomes visible. Build outputs that are compared with it may
// be newer than the time at which it was staged.
func touch(name string) {
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		now := time.Now()
		_ = os.Chtimes(name, now, now)
	}
}

// inherit gives a file the group of files that are created in a set-group-ID folder.
func inherit(name, dir string) {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSetgid == 0 {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(name, -1, int(stat.Gid))
	}
}

// sweepWaiting removes a copy beside its destination that a crash left. It is called only with a journal, and only
// for folders into which the landing puts files.
func sweepWaiting(r *gitops.Repository, scratch string, changes []gitops.Change) {
	for _, c := range changes {
		_ = os.Remove(filepath.Join(r.Top, path.Dir(c.Path), waitingName(scratch)))
	}
}

// refreshTime limits refresh, during which the index and the refs are locked: one of the user's clean filters may
// never end.
const refreshTime = 10 * time.Second

// refresh writes the stat data of the changed paths into the next index, and this index to the disk. placed are the files as the landing
// has renamed them.
func (l *landing) refresh(ctx context.Context, placed map[string]os.FileInfo) error {
	if l.entered != nil {
		if l.writing.Wait(); l.written != nil {
			return l.written
		}
		return l.entered.stampEntered(l.r, l.next(), placed)
	}
	if x := readIndex(l.next(), l.r.Format, l.changes); x != nil {
		return x.stamp(l.r, l.next(), l.changes, placed)
	}
	return refresh(ctx, l.r, l.next(), l.changes, l.filters)
}

// refresh does so with git.
func refresh(ctx context.Context, r *gitops.Repository, index string, changes []gitops.Change, filters landingFilters) error {
	if err := refreshByGit(ctx, r, index, changes, filters); err != nil {
		return err
	}
	return gitops.SyncPath(index)
}

// refreshByGit does so with git, which runs clean filters. Missing stat data only makes the user's next git status
// read the file. So a refresh that takes too long, or is interrupted, ends without an error.
func refreshByGit(ctx context.Context, r *gitops.Repository, index string, changes []gitops.Change, filters landingFilters) error {
	g := r.Durable().Configured(filters.config...).With("GIT_INDEX_FILE=" + index)
	var kept []gitops.Change
	for _, c := range changes {
		if c.New.Present() {
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if len(kept) > gitops.PathspecLimit {
		err := g.Change(ctx, gitops.Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: io.Discard, For: refreshTime})
		if gitops.Status(err) == 1 || interrupted(err) {
			return nil
		}
		return err
	}
	var names bytes.Buffer
	for _, c := range kept {
		names.WriteString(c.Path + "\x00")
	}
	err := g.Change(ctx, gitops.Call{Args: []string{"add", "--refresh", "--ignore-errors", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"},
		Stdin: &names, Stdout: io.Discard, For: refreshTime})
	if gitops.Status(err) > 0 || interrupted(err) {
		return nil
	}
	return err
}

// interrupted reports whether a git command was ended by a context, a time limit or a signal.
func interrupted(err error) bool {
	var killed *gitops.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &killed) && killed.Status < 0
}
