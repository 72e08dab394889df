//go:build !linux

package gitops

import (
	"os"
	"strconv"
	"syscall"
)

// identityOf tells a folder from every other on its file system.
func identityOf(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(stat.Ino), 10)
}
