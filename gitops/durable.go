package gitops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile replaces a file atomically and durably: a new file, synced, renamed over the old
// one, the folder synced.
func WriteFile(name string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
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
	return syncPath(filepath.Dir(name))
}

// syncPath makes a file's content, or a folder's entries, survive a power loss.
func syncPath(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncEach is the number of files up to which each is synced by itself; beyond it the whole file system is.
const syncEach = 16

// syncFiles syncs the content of the files below dir that changes name.
func syncFiles(dir string, names []string) error {
	if len(names) > syncEach {
		return syncFileSystem(dir)
	}
	for _, name := range names {
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err := syncPath(full); err != nil {
			return err
		}
	}
	return nil
}

// otherDevice tells whether two paths are on different file systems.
func otherDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev != y.Dev
}
