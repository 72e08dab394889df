// Package durable writes files of the host so that they survive a power loss, and moves them in one step.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/far"
)

// WriteFile replaces a file atomically and durably. It writes and syncs a new file, renames it to the name of the old one, and syncs the folder. It
// fails if a link has the name of the new file, since what the link leads to is another file.
func WriteFile(name string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return SyncPath(filepath.Dir(name))
}

// WriteJSON replaces a file by a value as JSON, as [WriteFile] does. Only the user can read it.
func WriteJSON(name string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFile(name, content, 0o600)
}

// ReadJSON reads a file of [WriteJSON] into v, and reports whether the file exists.
func ReadJSON(name string, v any) (found bool, err error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, v)
	}
	if err != nil {
		return false, fmt.Errorf("read %q: %w", name, err)
	}
	return true, nil
}

// SyncPath makes a file's content or a folder's entries survive a power loss.
func SyncPath(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncEach is the number of files up to which each file is synced separately. For more files the whole file system is synced.
const syncEach = 16

// SyncFiles syncs the content of the named files below dir.
func SyncFiles(dir string, names []string) error {
	if len(names) > syncEach {
		return SyncFileSystem(dir)
	}
	var running sync.WaitGroup // the file system writes them at once
	errs := make([]error, len(names))
	for i, name := range names {
		full := filepath.Join(dir, name)
		info, err := far.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		running.Go(func() { errs[i] = far.Do(full, SyncPath) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// OtherDevice reports whether two paths are on different file systems.
func OtherDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev != y.Dev
}

// RenameNew renames a file. If the new name exists, it returns an error for which errors.Is(err, [fs.ErrExist]) holds. Where the system
// cannot check that while it renames, RenameNew checks immediately before.
func RenameNew(from, to string) error {
	err := far.Both(from, to, renameNew)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if _, err := far.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return far.Rename(from, to)
}

// CopyFile creates a durable copy of a file or symbolic link.
func CopyFile(from, to string) error {
	info, err := far.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := far.Readlink(from)
		if err != nil {
			return err
		}
		return far.Symlink(target, to)
	}
	in, err := far.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := far.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}
