package gitops

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limitMemory limits the memory that a process may allocate: its heap and its private mappings, see getrlimit(2).
// Packs that are mapped for reading do not count. It ignores the error for a process that has ended.
func limitMemory(pid int, bytes int64) {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil)
}

// identityOf returns a string that distinguishes a folder from every other, including its copies, and that stays the same when the folder is moved
// within its file system. The number of the device is not included, since it may change at a reboot.
func identityOf(dir string) string {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}

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
	return rename(a, b, unix.RENAME_EXCHANGE)
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
