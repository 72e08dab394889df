//go:build unix

package prisontest

import (
	"io/fs"
	"syscall"
)

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
