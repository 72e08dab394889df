// Package far works on files whose absolute path is longer than the system accepts in one call. Git writes such a file by its path in the
// repository, which is shorter. The functions are those of package os, and do the same for all other paths.
package far

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Lstat is [os.Lstat].
func Lstat(name string) (info fs.FileInfo, err error) {
	err = Do(name, func(near string) (err error) { info, err = os.Lstat(near); return })
	return info, err
}

// Stat is [os.Stat].
func Stat(name string) (info fs.FileInfo, err error) {
	err = Do(name, func(near string) (err error) { info, err = os.Stat(near); return })
	return info, err
}

// Readlink is [os.Readlink].
func Readlink(name string) (target string, err error) {
	err = Do(name, func(near string) (err error) { target, err = os.Readlink(near); return })
	return target, err
}

// ReadFile is [os.ReadFile].
func ReadFile(name string) (content []byte, err error) {
	err = Do(name, func(near string) (err error) { content, err = os.ReadFile(near); return })
	return content, err
}

// OpenFile is [os.OpenFile].
func OpenFile(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
	err = Do(name, func(near string) (err error) { f, err = os.OpenFile(near, flag, mode); return })
	return f, err
}

// Symlink is [os.Symlink].
func Symlink(target, name string) error {
	return Do(name, func(near string) error { return os.Symlink(target, near) })
}

// Remove is [os.Remove].
func Remove(name string) error { return Do(name, os.Remove) }

// Chtimes is [os.Chtimes].
func Chtimes(name string, access, change time.Time) error {
	return Do(name, func(near string) error { return os.Chtimes(near, access, change) })
}

// Lchown is [os.Lchown].
func Lchown(name string, uid, gid int) error {
	return Do(name, func(near string) error { return os.Lchown(near, uid, gid) })
}

// Rename is [os.Rename].
func Rename(from, to string) error { return Both(from, to, os.Rename) }

// Both calls do with names for the same two files that the system accepts. The names are valid during the call.
func Both(a, b string, do func(a, b string) error) error {
	return Do(a, func(nearA string) error {
		return Do(b, func(nearB string) error { return do(nearA, nearB) })
	})
}

// MkdirAll is [os.MkdirAll].
func MkdirAll(name string, mode fs.FileMode) error {
	if len(name) <= nearLimit {
		return os.MkdirAll(name, mode)
	}
	if info, err := Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := MkdirAll(filepath.Dir(name), mode); err != nil {
		return err
	}
	err := Do(name, func(near string) error { return os.Mkdir(near, mode) })
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := Stat(name); err == nil && info.IsDir() {
		return nil // another process has created it meanwhile
	}
	return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
}

// nearLimit is the length up to which a path is used as it is. PATH_MAX of Linux is 4,096 with a NUL at the end, and functions of package os add
// names to a path.
const nearLimit = 3800

// split returns the longest first part of a path that is not longer than nearLimit and ends before a slash, and the rest.
func split(name string) (first, rest string) {
	i := strings.LastIndexByte(name[:nearLimit+1], '/')
	if i <= 0 {
		return "", name // no component is that long
	}
	return name[:i], strings.TrimLeft(name[i:], "/")
}
