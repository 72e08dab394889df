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
)

// moveIn makes the working tree new: removals first, so that a folder can become a file, then
// renames from staging, each atomic.
func moveIn(r *gitops.Repository, changes []gitops.Change, scratch, staging string) error {
	for _, c := range changes {
		if c.Old.Present() && !c.New.Present() {
			stopAt(stepSwing)
			if err := removeFile(r, c); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if c.New.Present() {
			if err := moveOne(r, c, scratch, filepath.Join(staging, c.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveOne puts one new or changed file into its place.
func moveOne(r *gitops.Repository, c gitops.Change, scratch, from string) error {
	to := filepath.Join(r.Top, c.Path)
	if c.New.Gitlink() {
		stopAt(stepSwing)
		// A file that was there becomes the folder of a submodule.
		if c.Old.Present() && !c.Old.Gitlink() {
			if err := removeFile(r, c); err != nil {
				return err
			}
		}
		return os.MkdirAll(to, 0o777)
	}
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil // outside a sparse checkout
	}
	stopAt(stepSwing)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if info, err := os.Lstat(to); err == nil && info.IsDir() {
		if err := removeEmptyFolders(to); err != nil {
			return err
		}
	}
	return moveFile(from, to, waitingName(scratch))
}

// removeEmptyFolders removes a folder in which there is nothing but folders; if there is something else,
// it changes nothing.
func removeEmptyFolders(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = fmt.Errorf("%s is in the way", p)
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

// removeFile removes a file and the folders it leaves empty. An unpopulated or still populated
// submodule folder is left to its owner.
func removeFile(r *gitops.Repository, c gitops.Change) error {
	// Below a link of the user's there is nothing of ours, and the link is no empty folder.
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

// notThere reports whether nothing is at a path, or a file is where one of its folders would be.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// waitingName is the name under which a file of a landing waits beside its place when it could not be renamed there
// from another file system; at most one at a time does. It is as random as the landing's scratch folder.
func waitingName(scratch string) string { return "." + filepath.Base(scratch) }

// moveFile renames; across file systems it copies to a name beside the target first.
func moveFile(from, to, waiting string) error {
	inherit(from, filepath.Dir(to))
	touch(from)
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	beside := filepath.Join(filepath.Dir(to), waiting)
	if err := gitops.CopyFile(from, beside); err != nil {
		return err
	}
	return os.Rename(beside, to)
}

// touch makes a file as young as it becomes here and now: what builds compare it with may have been made since it was staged.
func touch(name string) {
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		now := time.Now()
		_ = os.Chtimes(name, now, now)
	}
}

// inherit gives a file the group that a file made in a set-group-ID folder has.
func inherit(name, dir string) {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSetgid == 0 {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(name, -1, int(stat.Gid))
	}
}

// sweepWaiting removes what a crash left of a copy beside its place. It is called under a journal, and
// only for folders in which the landing put files.
func sweepWaiting(r *gitops.Repository, scratch string, changes []gitops.Change) {
	for _, c := range changes {
		_ = os.Remove(filepath.Join(r.Top, path.Dir(c.Path), waitingName(scratch)))
	}
}

// refresh writes the stat data of the changed paths into an index. gitops.Git runs clean filters for it.
func refresh(ctx context.Context, r *gitops.Repository, index string, changes []gitops.Change, filters landingFilters) error {
	g := r.Durable().Configured(filters.config...).With("GIT_INDEX_FILE=" + index)
	var kept []gitops.Change
	for _, c := range changes {
		if c.New.Present() {
			kept = append(kept, c)
		}
	}
	switch {
	case len(kept) == 0:
		return nil
	case len(kept) > gitops.PathspecLimit:
		err := g.Change(ctx, gitops.Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: io.Discard})
		if gitops.Status(err) == 1 {
			return nil
		}
		return err
	}
	var names bytes.Buffer
	for _, c := range kept {
		names.WriteString(c.Path + "\x00")
	}
	err := g.Change(ctx, gitops.Call{Args: []string{"add", "--refresh", "--ignore-errors", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"}, Stdin: &names, Stdout: io.Discard})
	if gitops.Status(err) > 0 {
		return nil // stat data that is missing costs the user's next git status a look, nothing more
	}
	return err
}
