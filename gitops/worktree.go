package gitops

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
	"strings"
	"syscall"
	"time"
)

// Entry is one side of a changed path; the zero Entry is "not there".
type Entry struct {
	Mode Mode
	OID  OID
}

func (e Entry) present() bool { return e.Mode != 0 }
func (e Entry) gitlink() bool { return e.Mode == ModeGitlink }

// Change is one path that differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// Diff lists the paths in which two trees differ, renames as a removal and an addition, submodules whatever
// a .gitmodules file says of hiding them.
func (g *Git) Diff(ctx context.Context, old, new OID) ([]Change, error) {
	records, err := g.records(ctx, Call{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
		"--ignore-submodules=none", string(old), string(new)}})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(records)/2)
	for i := 0; i+1 < len(records); i += 2 {
		f := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("diff-tree answered %q", Escape(records[i]))
		}
		before, err := entry(f[0], f[2])
		if err != nil {
			return nil, err
		}
		after, err := entry(f[1], f[3])
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{Path: records[i+1], Old: before, New: after})
	}
	return changes, nil
}

// entry is what git prints of one.
func entry(mode, id string) (Entry, error) {
	if mode == "000000" {
		return Entry{}, nil
	}
	m, ok := parseMode(mode)
	if !ok {
		return Entry{}, fmt.Errorf("git printed %q as a mode", Escape(mode))
	}
	return Entry{m, OID(id)}, nil
}

// lstat looks at a path of the working tree and follows no link on the way, as git does: below a
// link there is nothing.
func (r *Repository) lstat(name string) (fs.FileInfo, error) {
	for i, char := range name {
		if char != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.Top, name[:i]))
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	return os.Lstat(filepath.Join(r.Top, name))
}

func (r *Repository) there(name string) bool {
	_, err := r.lstat(name)
	return err == nil
}

// moveIn makes the working tree new: removals first, so that a folder can become a file, then
// renames from staging, each atomic.
func (r *Repository) moveIn(changes []Change, scratch, staging string) error {
	for _, c := range changes {
		if c.Old.present() && !c.New.present() {
			stopAt(stepSwing)
			if err := r.removeFile(c); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if c.New.present() {
			if err := r.moveOne(c, scratch, filepath.Join(staging, c.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveOne puts one new or changed file into its place.
func (r *Repository) moveOne(c Change, scratch, from string) error {
	to := filepath.Join(r.Top, c.Path)
	if c.New.gitlink() {
		stopAt(stepSwing)
		// A file that was there becomes the folder of a submodule.
		if c.Old.present() && !c.Old.gitlink() {
			if err := r.removeFile(c); err != nil {
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
func (r *Repository) removeFile(c Change) error {
	// Below a link of the user's there is nothing of ours, and the link is no empty folder.
	if r.there(c.Path) {
		if err := os.Remove(filepath.Join(r.Top, c.Path)); err != nil && !notThere(err) && !c.Old.gitlink() {
			return err
		}
	}
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		if !r.there(dir) || syscall.Rmdir(filepath.Join(r.Top, dir)) != nil {
			break
		}
	}
	return nil
}

// notThere tells whether nothing is at a path, or a file is where one of its folders would be.
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
	if err := copyFile(from, beside); err != nil {
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

// copyFile makes a new file or link like another one, durably.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}

// sweepWaiting removes what a crash left of a copy beside its place. It is called under a journal, and
// only for folders in which the landing put files.
func (r *Repository) sweepWaiting(scratch string, changes []Change) {
	for _, c := range changes {
		_ = os.Remove(filepath.Join(r.Top, path.Dir(c.Path), waitingName(scratch)))
	}
}

// refresh writes the stat data of the changed paths into an index. Git runs clean filters for it.
func (r *Repository) refresh(ctx context.Context, index string, changes []Change, filters landingFilters) error {
	g := r.durable().configured(filters.config...).with("GIT_INDEX_FILE=" + index)
	var kept []Change
	for _, c := range changes {
		if c.New.present() {
			kept = append(kept, c)
		}
	}
	switch {
	case len(kept) == 0:
		return nil
	case len(kept) > pathspecLimit:
		err := g.Change(ctx, Call{Args: []string{"update-index", "-q", "--refresh"}, Stdout: io.Discard})
		if status(err) == 1 {
			return nil
		}
		return err
	}
	var names bytes.Buffer
	for _, c := range kept {
		names.WriteString(c.Path + "\x00")
	}
	err := g.Change(ctx, Call{Args: []string{"add", "--refresh", "--ignore-errors", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"}, Stdin: &names, Stdout: io.Discard})
	if status(err) > 0 {
		return nil // stat data that is missing costs the user's next git status a look, nothing more
	}
	return err
}
