package gitops

import (
	"os"

	"golang.org/x/sys/unix"
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
