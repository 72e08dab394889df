// Package hostfile stores a backend's data about a prison: small JSON files in the prison's folder on the host.
package hostfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Read reads a JSON file into v. If the file does not exist, it returns the error of [os.ReadFile].
func Read(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// ReadRunning does what [Read] does, for a file of [WriteRunning]. An empty file counts as missing.
func ReadRunning(path string, v any) error {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return Read(path, v)
}

// Find reads a JSON file. It returns nil if the file does not exist.
func Find[T any](path string) (*T, error) {
	v := new(T)
	if err := Read(path, v); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return v, nil
}

// Write replaces the content of a file by v in JSON, as [Replace] does.
func Write(path string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Replace(path, append(content, '\n'))
}

// WriteRunning replaces the content of a file by v in JSON. v must describe running processes: WriteRunning does not wait for the disk,
// so after a power loss, which ends these processes, the file may have an earlier content, or be empty or missing.
func WriteRunning(path string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return rename(path, append(content, '\n'), func(*os.File) error { return nil })
}

// Replace replaces a file. A reader gets either the old or the new content, after a power loss, too, and even if several processes write
// at the same time.
func Replace(path string, content []byte) error {
	if err := rename(path, content, (*os.File).Sync); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Lock opens a file, with flags of open(2), and locks it until it is closed. The error is EWOULDBLOCK if another process has the lock.
func Lock(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// rename writes a new file, calls written with it, and renames it to path.
func rename(path string, content []byte, written func(*os.File) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, written(temp), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name()) // the first error is returned
	}
	return err
}
