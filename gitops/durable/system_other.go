//go:build !linux

package durable

import (
	"errors"
	"syscall"
)

// SyncFileSystem syncs all file systems, including the one that contains dir, since this system has no call for a single one.
func SyncFileSystem(string) error {
	_ = syscall.Sync() // it returns an error on some systems and nothing on others
	return nil
}

// Exchange would exchange two files in one step, which needs Linux.
func Exchange(string, string) error { return errors.ErrUnsupported }

func renameNew(string, string) error { return errors.ErrUnsupported }
