//go:build !linux

package hosttree

import "os"

// Remove removes path and everything below it. It never follows a symbolic link.
func Remove(path string) error { return os.RemoveAll(path) }
