package hosttree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Remove removes path and everything below it, with any modes. The caller must have the capabilities for that. Remove never follows a
// symbolic link. It keeps one folder open and uses names relative to it, because the creator of the tree may have made the tree deeper
// than PATH_MAX and than the limit of open files. [os.RemoveAll] keeps a folder open for each level.
func Remove(path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(parent)
	name := filepath.Base(path)
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == unix.ENOENT {
		return nil
	} else if err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.Unlinkat(parent, name, 0)
	} else if err = emptyTree(parent, name); err == nil {
		err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// level is a folder on the way down from the top.
type level struct {
	name     string   // name of the folder in its parent
	dev, ino uint64   // identify the parent
	left     []string // folders in it that must still be emptied
}

// emptyTree removes everything below a folder. It goes down into a folder, and up again when that folder is empty.
func emptyTree(parent int, name string) error {
	dir, err := openFolder(parent, name)
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()
	top := level{}
	if top.left, err = removeEntries(dir); err != nil {
		return err
	}
	for way := []level{top}; ; {
		here := &way[len(way)-1]
		switch last := len(here.left) - 1; {
		case last >= 0:
			l := level{name: here.left[last]}
			here.left = here.left[:last]
			if l.dev, l.ino, err = identity(dir); err != nil {
				return err
			}
			if dir, err = step(dir, l.name); err != nil {
				return err
			}
			if l.left, err = removeEntries(dir); err != nil {
				return err
			}
			way = append(way, l)
		case len(way) == 1:
			return nil
		default:
			if dir, err = leave(dir, *here); err != nil {
				return err
			}
			way = way[:len(way)-1]
		}
	}
}

// leave removes an empty folder, and returns its parent.
func leave(dir *os.File, l level) (*os.File, error) {
	dir, err := step(dir, "..")
	if err != nil {
		return dir, err
	}
	if dev, ino, err := identity(dir); err != nil || dev != l.dev || ino != l.ino {
		return dir, errors.Join(err, errors.New("a folder was moved meanwhile"))
	}
	if err := unix.Unlinkat(int(dir.Fd()), l.name, unix.AT_REMOVEDIR); err != nil {
		return dir, fmt.Errorf("folder %q: %w", l.name, err)
	}
	return dir, nil
}

// step replaces an open folder by its parent, or by a folder in it.
func step(dir *os.File, name string) (*os.File, error) {
	next, err := openFolder(int(dir.Fd()), name)
	if err != nil {
		return dir, err
	}
	dir.Close()
	return next, nil
}

func openFolder(parent int, name string) (*os.File, error) {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func identity(dir *os.File) (dev, ino uint64, err error) {
	var st unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &st)
	return uint64(st.Dev), st.Ino, err //nolint:unconvert // 32 bits on other architectures
}

// removeEntries removes all entries of a folder. It returns the names of folders that are not empty.
func removeEntries(dir *os.File) (left []string, err error) {
	fd := int(dir.Fd())
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			err := unix.Unlinkat(fd, name, 0)
			if err == unix.EISDIR || err == unix.EPERM { // POSIX systems report EPERM for folders
				err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
			}
			switch {
			case err == unix.ENOTEMPTY, err == unix.EEXIST:
				left = append(left, name)
			case err != nil && err != unix.ENOENT:
				return nil, fmt.Errorf("entry %q: %w", name, err)
			}
		}
		if err == io.EOF {
			return left, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
