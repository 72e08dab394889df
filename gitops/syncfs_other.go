//go:build !linux

package gitops

import "syscall"

// SyncFileSystem writes out the file system that holds dir, and all others: there is no finer call.
func SyncFileSystem(string) error {
	_ = syscall.Sync() // its result is an error on some systems and nothing on others
	return nil
}
