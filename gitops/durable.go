package gitops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	return SyncPath(filepath.Dir(name))
}

// SyncPath makes a file's content, or a folder's entries, survive a power loss.
func SyncPath(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncEach is the number of files up to which each is synced by itself; beyond it the whole file system is.
const syncEach = 16

// SyncFiles syncs the content of the files below dir that changes name.
func SyncFiles(dir string, names []string) error {
	if len(names) > syncEach {
		return SyncFileSystem(dir)
	}
	for _, name := range names {
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err := SyncPath(full); err != nil {
			return err
		}
	}
	return nil
}

// OtherDevice reports whether two paths are on different file systems.
func OtherDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev != y.Dev
}

// CopyFile makes a new file or link like another one, durably.
func CopyFile(from, to string) error {
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

// Unless returns nil for an expected error, and any other as it is.
func Unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// GlobQuote takes the meaning from the characters that [filepath.Glob] knows.
func GlobQuote(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
