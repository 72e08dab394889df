//go:build !linux

package gitops

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// limitMemory does nothing: it needs Linux, as a prison does.
func limitMemory(int, int64) {}

// identityOf returns a string that distinguishes a folder from every other on its file system.
func identityOf(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(stat.Ino, 10)
}

// SyncFileSystem syncs all file systems, including the one that contains dir, since this system has no call for a single one.
func SyncFileSystem(string) error {
	_ = syscall.Sync() // it returns an error on some systems and nothing on others
	return nil
}

// Exchange would exchange two files in one step, which needs Linux.
func Exchange(string, string) error { return errors.ErrUnsupported }

func renameNew(string, string) error { return errors.ErrUnsupported }
