package land

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/far"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

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
			err = hostenv.RemoveFolder(p) // never a file that has just taken the place of the folder
		}
	}
	return err
}

// notThere reports whether nothing exists at a path, or whether one of its folders is a file.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// touch sets the time of a file to the time at which it becomes visible. Otherwise a build could find that its output is newer than the file,
// which was written before the landing.
func touch(name string, info fs.FileInfo) {
	if info.Mode().IsRegular() {
		now := time.Now()
		_ = far.Chtimes(name, now, now)
	}
}

// inherit gives a file the group of files that are created in a set-group-ID folder.
func inherit(name, dir string) {
	info, err := far.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSetgid == 0 {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = far.Lchown(name, -1, int(stat.Gid))
	}
}

// refreshTime bounds refresh, during which the index and the refs are locked. Without a bound, a clean filter of the user could keep them locked
// for ever.
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
	if err := refreshByGit(ctx, l.r, l.next(), l.changes, l.filters); err != nil {
		return err
	}
	return durable.SyncPath(l.next())
}

// refreshByGit lets git write the stat data of the changed paths into an index. Git runs clean filters for this. A refresh that takes too long, or
// is interrupted, is not an error: the user's next git status reads the files without stat data.
func refreshByGit(ctx context.Context, r *gitops.Repository, index string, changes []gitops.Change, filters landingFilters) error {
	g := r.Durable().Configured(filters.config...).With("GIT_INDEX_FILE=" + index)
	kept := slices.DeleteFunc(slices.Clone(changes), func(c gitops.Change) bool { return !c.New.Present() })
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
