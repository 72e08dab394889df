package cmdline

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file in one step. It follows no link, and writes to no other file of the folder: a work tree may have files and
// links of any name that an agent made.
func ReplaceFile(file string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
