package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops/far"
)

// SyncFileSystem writes out the file system that holds dir.
func SyncFileSystem(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// Exchange exchanges two files in one step. Where the system or the file system cannot do so, it returns an error for which
// errors.Is(err, [errors.ErrUnsupported]) holds.
func Exchange(a, b string) error {
	return far.Both(a, b, func(a, b string) error { return rename(a, b, unix.RENAME_EXCHANGE) })
}

// renameNew renames a file unless the new name exists, see renameat2(2).
func renameNew(from, to string) error {
	return rename(from, to, unix.RENAME_NOREPLACE)
}

func rename(from, to string, flags uint) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	if err == unix.EINVAL { // the file system does not know the flag
		err = errors.ErrUnsupported
	}
	if err != nil {
		return &os.LinkError{Op: "renameat2", Old: from, New: to, Err: err}
	}
	return nil
}
