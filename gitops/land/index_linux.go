package land

import (
	"encoding/binary"
	"io/fs"
	"math"
	"syscall"
)

// statData returns the stat data of a file or a symbolic link in the form of an index entry, with the mode that git would give it. It returns nil
// if git must read the file itself.
func statData(info fs.FileInfo) []byte {
	if info == nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Size > math.MaxUint32 {
		return nil
	}
	mode := uint32(0o120000)
	switch {
	case info.Mode().IsRegular():
		mode = 0o100644
		if stat.Mode&0o100 != 0 {
			mode = 0o100755
		}
	case info.Mode()&fs.ModeSymlink == 0:
		return nil
	}
	var b []byte
	for _, n := range []uint32{uint32(stat.Ctim.Sec), uint32(stat.Ctim.Nsec), uint32(stat.Mtim.Sec), uint32(stat.Mtim.Nsec),
		uint32(stat.Dev), uint32(stat.Ino), mode, stat.Uid, stat.Gid, uint32(stat.Size)} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
