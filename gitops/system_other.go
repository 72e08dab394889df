//go:build !linux

package gitops

import (
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
