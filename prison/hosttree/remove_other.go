//go:build !linux

package hosttree

import "os"

// Remove removes path and what is below it, never through a link.
func Remove(path string) error { return os.RemoveAll(path) }
