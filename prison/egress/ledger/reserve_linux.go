package ledger

import (
	"errors"
	"os"
	"syscall"
)

// reserve allocates blocks behind the end of a file, and does not change its size: see fallocate(2).
func reserve(f *os.File, at, size int64) error {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	err := syscall.Fallocate(int(f.Fd()), keepSize, at, size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return nil
	}
	return err
}
